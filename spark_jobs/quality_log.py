"""The one way by which rows get into ``quality_results``."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from typing import Any

import filelock

from include import quality_index
from include.tables import QUALITY_RESULTS
from spark_jobs.io import Lake

log = logging.getLogger("clickmill")


def append_results(lake: Lake, rows: Sequence[tuple[Any, ...]]) -> None:
    """Add rows, each with its values in the table's order of columns, in one commit; and bring the index up to it."""
    lake.append_rows(QUALITY_RESULTS, rows)
    try:
        quality_index.catch_up(lake.settings)
    except (OSError, sqlite3.Error, filelock.Timeout) as error:
        # The rows are in the table; whoever reads the index next takes them in.
        log.warning("%s is behind quality_results: %s", lake.settings.quality_index, error)

"""The one way by which rows get into ``quality_results``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from include.tables import QUALITY_RESULTS
from spark_jobs.io import Lake


def append_results(lake: Lake, rows: Sequence[tuple[Any, ...]]) -> None:
    """Add rows, each with its values in the table's order of columns, in one commit."""
    lake.append_rows(QUALITY_RESULTS, rows)

"""The one way by which rows get into ``quality_results``, and what its publication events say."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import filelock

from include import quality_index
from include.log_hours import Hour
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


def published_at(lake: Lake, click_hours: Iterable[Hour]) -> dict[Hour, int]:
    """When each of these click hours was published last, in microseconds since 1970; without those that never were."""
    asked = {str(hour): hour for hour in click_hours}
    events = lake.read_rows(
        QUALITY_RESULTS,
        ["partition", "validated_at"],
        [("suite", "=", "publication"), ("outcome", "in", ["published", "published_anyway"])],
    )
    published: dict[Hour, int] = {}
    for event in events:
        hour = asked.get(event["partition"])
        if hour is not None:
            moment = event["validated_at"]
            micros = int(moment.timestamp()) * 1_000_000 + moment.microsecond
            published[hour] = max(micros, published.get(hour, micros))
    return published

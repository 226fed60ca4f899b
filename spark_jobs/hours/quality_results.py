"""How rows get into ``quality_results`` and leave it again, and what its publication events say."""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import filelock

from include import quality_index
from include.holds import DROPPED, PUBLISHED, PUBLISHED_ANYWAY, SUITE
from include.log_hours import Hour
from include.settings import Settings
from include.storage import entries, remove_folder
from include.tables import GROUPING_METRICS, QUALITY_RESULTS
from spark_jobs.lake.lake import Lake

log = logging.getLogger("clickmill")
#: Each run adds a file; when there are so many they are made one, and what is too old is left out.
MOST_FILES = 100
_RUN_ID = re.compile(r"^(\d{8}T\d{6})-[0-9a-f]{8}$")


def append_results(lake: Lake, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows in one commit, as ``Lake.append_rows``; and bring the index up to it."""
    lake.append_rows(QUALITY_RESULTS, rows)
    _catch_up(lake)


def published_at(lake: Lake, click_hours: Sequence[Hour]) -> dict[Hour, int]:
    """When each of these click hours was published last, in microseconds since 1970; without those that never were.

    Nor with those that a person has dropped since: what was published before is there, perhaps again. An answer that
    was not carried out yet has published nothing.
    """
    if not click_hours:
        return {}
    events = lake.read_rows(
        QUALITY_RESULTS,
        ["hour", "validated_at", "outcome", "advice"],
        [
            ("suite", "=", SUITE),
            ("outcome", "in", [PUBLISHED, PUBLISHED_ANYWAY, DROPPED]),
            ("hour", "in", [str(hour) for hour in click_hours]),
        ],
    )
    published: dict[Hour, int] = {}
    done = (event for event in events if not event["advice"])
    for event in sorted(done, key=lambda event: event["validated_at"]):
        hour, moment = Hour.parse(event["hour"]), event["validated_at"]
        published[hour] = int(moment.timestamp()) * 1_000_000 + moment.microsecond
        if event["outcome"] == DROPPED:
            del published[hour]
    return published


def remove_old_results(lake: Lake, settings: Settings, now: datetime) -> None:
    """Remove outcomes, the loads of instances and Data Docs that are older than the settings say.

    Data Docs go at once, a folder for each run. Rows go when the table has so many files that it is written again.
    Publication events stay: the newest one is the state of its click hour.
    """
    pipeline = settings.pipeline
    _remove_data_docs(settings.reports / "data_docs", now - timedelta(days=pipeline.data_docs_days))
    too_old = f"TIMESTAMP '{now - timedelta(days=pipeline.quality_results_days):%Y-%m-%dT%H:%M:%SZ}'"
    lake.compact(GROUPING_METRICS, f"measured_at < {too_old}", above_files=MOST_FILES)
    if lake.compact(QUALITY_RESULTS, f"suite <> 'publication' AND validated_at < {too_old}", above_files=MOST_FILES):
        # The files are others now, and the index is made again: here rather than by who opens the next page.
        _catch_up(lake)


def _catch_up(lake: Lake) -> None:
    try:
        quality_index.catch_up(lake.settings)
    except (OSError, sqlite3.Error, filelock.Timeout) as error:
        # The rows are in the table; whoever reads the index next takes them in.
        log.warning("%s is behind quality_results: %s", lake.settings.quality_index, error)


def _remove_data_docs(folder: Path, before: datetime) -> None:
    for run in entries(folder):
        named = _RUN_ID.match(run.path.name)
        if named and datetime.strptime(named[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC) < before:
            remove_folder(run.path)

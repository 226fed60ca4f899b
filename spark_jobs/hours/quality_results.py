"""How rows get into ``quality_results`` and leave it again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from include.quality_index import catch_up_if_possible
from include.settings import Settings
from include.storage import entries, remove_folder
from include.tables import GROUPING_METRICS, JOURNAL, QUALITY_RESULTS
from spark_jobs.lake.lake import Lake

#: Each run adds a file; when there are so many, the table is written again as few, without what is too old.
MOST_FILES = 100
_RUN_ID = re.compile(r"^(\d{8}T\d{6})-[0-9a-f]{8}$")


def append_results(lake: Lake, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows in one commit, as ``Lake.append_rows``; and bring the index up to it."""
    lake.append_rows(QUALITY_RESULTS, rows)
    catch_up_if_possible(lake.settings)


def remove_old_results(lake: Lake, settings: Settings, now: datetime) -> None:
    """Remove outcomes, the loads of instances and Data Docs that are older than the settings say.

    Data Docs go at once, a folder for each run. Rows go when the table has so many files that it is written again.
    The journal is written again too when it has so many, but no row of it goes.
    """
    pipeline = settings.pipeline
    _remove_data_docs(settings.reports / "data_docs", now - timedelta(days=pipeline.data_docs_days))
    too_old = f"TIMESTAMP '{now - timedelta(days=pipeline.quality_results_days):%Y-%m-%dT%H:%M:%SZ}'"
    lake.compact(GROUPING_METRICS, f"measured_at < {too_old}", above_files=MOST_FILES)
    results = lake.compact(QUALITY_RESULTS, f"validated_at < {too_old}", above_files=MOST_FILES)
    events = lake.compact(JOURNAL, above_files=MOST_FILES)
    if results or events:
        # The files are others now, and the index is made again: here rather than by who opens the next page.
        catch_up_if_possible(lake.settings)


def _remove_data_docs(folder: Path, before: datetime) -> None:
    for run in entries(folder):
        named = _RUN_ID.match(run.path.name)
        if named and datetime.strptime(named[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC) < before:
            remove_folder(run.path)

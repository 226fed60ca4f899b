"""Hourly counts past their days: computed, live and published ones, with their exports. Daily counts stay."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import date, timedelta
from functools import partial
from pathlib import Path

import pyarrow.compute as pc

from include.counting import counted_tables, live_count_table
from include.hours import Hour, LogHour
from include.storage import find
from include.tables import AGGREGATES, INGEST_ACCOUNTING, STREAM_PROGRESS, VISIBILITY, Table
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.stages import Stage
from spark_jobs.publish.database import remove_from_database
from spark_jobs.retention.removal import removal, removal_of_files

#: The days of an hour, in any time zone, have no other hours but of so many days around it.
_OF_ITS_DAYS = timedelta(days=2)


def old_counts(lake: Lake, before: date, gone: Collection[LogHour]) -> Iterator[Stage]:
    """Those of click dates before that, a removal for each table. Hold the lake's lock until they have gone.

    They stay as long as an hour of their days may be counted again: as there are clicks, but of log hours that
    are ``gone``, or would be.
    """
    open_hours = _open_click_hours(lake, gone)
    earliest = min(open_hours, default=None)
    kept: tuple[str, ...] = ()
    if earliest is not None and earliest.day - _OF_ITS_DAYS < before:
        before = earliest.day - _OF_ITS_DAYS
        kept = (f"counts from {before} on, as there are clicks of {earliest}, which may be counted again",)
    is_old = pc.field("partition.click_date") < before
    counts = lake.settings.pipeline.counts
    live = filter(lake.exists, map(live_count_table, counts))
    for table in (*counted_tables(counts).values(), *live):
        remove = partial(lake.replace_files, table, [], is_old)
        yield removal_of_files(f"{table.name} before {before}", lake.data_files(table, is_old), remove, kept)
        kept = ()
    for table in AGGREGATES.values():
        yield _published(lake, table, before)
    for table in VISIBILITY.values():
        if files := lake.data_files(table, is_old):
            yield removal_of_files(
                f"{table.name} before {before}", files, partial(lake.replace_files, table, [], is_old)
            )


def old_progress(lake: Lake, before: date) -> list[Stage]:
    """What streams said of micro-batches that began before that, but for each query's first one, which is asked for."""
    where = [("began_at", "<", before), ("batch_id", ">", 0)]
    rows = sum(batch.num_rows for batch in lake.open_table(STREAM_PROGRESS, ["batch_id"], [where]))

    def remove() -> None:
        lake.compact(STREAM_PROGRESS, f"began_at < TIMESTAMP '{before}T00:00:00Z' AND batch_id > 0")

    return [removal(f"{STREAM_PROGRESS.name} before {before}", rows, int(rows > 0), 0, remove)]


def _published(lake: Lake, table: Table, before: date) -> Stage:
    is_old = pc.field("partition.click_date") < before
    exports = [
        (entry.path, entry.size)
        for entry in find(lake.settings.reports / "exports" / table.name, "click_date=*/click_hour=*/*")
        if _date_of(entry.path) < before
    ]

    def remove() -> None:
        # Last of all what says that there is something to remove.
        for path, _ in exports:
            path.unlink(missing_ok=True)
        remove_from_database(lake.settings, table, before)
        lake.replace_files(table, [], is_old)

    files = lake.data_files(table, is_old)
    rows, size = sum(file.rows for file in files), sum(file.size for file in files) + sum(size for _, size in exports)
    return removal(f"{table.name} and exports before {before}", rows, len(files) + len(exports), size, remove)


def _date_of(export: Path) -> date:
    return date.fromisoformat(export.parent.parent.name.removeprefix("click_date="))


def _open_click_hours(lake: Lake, gone: Collection[LogHour]) -> set[Hour]:
    """The click hours of which there are clicks."""
    columns = ["source", "log_date", "log_hour", "click_hours", "clicks_removed_at"]
    rows = (row for row in lake.read_rows(INGEST_ACCOUNTING, columns, []) if not row["clicks_removed_at"])
    left = (row for row in rows if LogHour.of(row) not in gone)
    return {Hour.parse(hour) for row in left for hour in row["click_hours"]}

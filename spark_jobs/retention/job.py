"""What is past its days, or not needed any more, removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

from include.hours import Hour, LogHour
from include.settings import Settings
from include.tables import AGGREGATES
from include.visitor_keys import VisitorKeys, days_in_words
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.stages import Stage, Stages, evaluate, explain
from spark_jobs.lake.unneeded_files import remove_unneeded_files, stored_tables, unneeded_files
from spark_jobs.retention.days import retention_of
from spark_jobs.retention.old_clicks import old_clicks, old_texts
from spark_jobs.retention.old_counts import old_counts, old_progress
from spark_jobs.retention.old_landing import old_landing

#: As long as Delta's log says which files were replaced, unless a table's property says otherwise.
#: Source: https://docs.delta.io/latest/table-properties.html, delta.deletedFileRetentionDuration
KEPT = timedelta(days=7)


_LEFT_ALONE = {table.name for table in AGGREGATES.values()}


def maintain(settings: Settings, *, dry_run: bool, kept: timedelta = KEPT, now: datetime | None = None) -> list[str]:
    """Maintain the tables of the lake; returns lines on what goes and what stays, though it is as old, and why.

    Raises:
        UsageError: if the days of ``[retention]`` do not fit together; then nothing has been removed.
    """
    stages = _stages(Lake(None, settings), now or datetime.now(UTC), kept)
    return explain(stages) if dry_run else evaluate(stages, {})


def _stages(lake: Lake, now: datetime, kept: timedelta) -> Stages:
    # What is found is what goes: no job changes it meanwhile.
    for find in _past_their_days(lake, now):
        with lake.locked():
            yield from find()
    keys, key_days = VisitorKeys.of(lake.settings), lake.settings.pipeline.retention.visitor_key_days
    with lake.locked():
        old = keys.made_before(now - timedelta(days=key_days))
        lines = [f"keys for visitors of {days_in_words(old)}"] if old else []
        yield Stage("keys for visitors", lines, partial(keys.remove, old, now))
    yield from _tidied(lake, kept)


def _past_their_days(lake: Lake, now: datetime) -> Iterator[Callable[[], Iterable[Stage]]]:
    """What to look for, in an order in which what is needed by the next one goes after it."""
    retention, general, gone = retention_of(lake.settings), lake.settings.pipeline.retention, set[LogHour]()

    def before(days: int) -> Hour:
        return Hour.containing(now - timedelta(days=days))

    for name, days in retention.items():
        if days.quarantined_days is not None:
            yield partial(old_texts, lake, name, before(days.quarantined_days))
        if days.clicks_days is not None:
            yield partial(old_clicks, lake, name, before(days.clicks_days), gone)
        if days.landing_days is not None:
            yield partial(old_landing, lake, name, before(days.landing_days), general.landing_archive)
    if general.counts_days is not None:
        yield partial(old_counts, lake, before(general.counts_days).day, gone)
    if general.progress_days is not None:
        yield partial(old_progress, lake, before(general.progress_days).day)


def _tidied(lake: Lake, kept: timedelta) -> Stages:
    """The tables' folders: a stage for each that has something to remove, and one for all."""
    files, size = 0, 0
    for name in stored_tables(lake.settings.lake):
        table = lake.settings.lake / name
        if name in _LEFT_ALONE:
            continue
        # No job is between looking at a version and reading its files, nor between writing files and their commit.
        with lake.locked(), lake.locked(f"write-{name}"):
            if unneeded := unneeded_files(table, kept):
                bytes_ = sum(file.size_bytes for file in unneeded)
                lines = [f"{name}: {len(unneeded):,} files, {bytes_ / 1e6:,.1f} MB"]
                yield Stage(f"files of {name}", lines, partial(remove_unneeded_files, table, kept))
                files, size = files + len(unneeded), size + bytes_
    left, total = "replaced or left behind earlier", f"{files:,} files, {size / 1e6:,.1f} MB"
    yield Stage("all files", [f"{left}, would be removed: {total}"], lambda: [f"{left}, removed: {total}"])

"""What is past its days, or not needed any more, removed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

from include.hours import Hour, LogHour
from include.settings import Settings
from include.tables import AGGREGATES
from include.visitor_keys import destroy_old_keys
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.unneeded_files import remove_unneeded_files, stored_tables, unneeded_files
from spark_jobs.retention.days import retention_of
from spark_jobs.retention.old_clicks import old_clicks, old_texts
from spark_jobs.retention.old_counts import old_counts, old_progress
from spark_jobs.retention.old_landing import old_landing
from spark_jobs.retention.removal import Removal

#: As long as Delta's log says which files were replaced, unless a table's property says otherwise.
#: Source: https://docs.delta.io/latest/table-properties.html, delta.deletedFileRetentionDuration
KEPT = timedelta(days=7)


_LEFT_ALONE = {table.name for table in AGGREGATES.values()}


def maintain(settings: Settings, *, dry_run: bool, kept: timedelta = KEPT, now: datetime | None = None) -> list[str]:
    """Maintain the tables of the lake; returns lines on what goes and what stays, though it is as old, and why.

    Raises:
        UsageError: if the days of ``[retention]`` do not fit together; then nothing has been removed.
    """
    lake, now = Lake(None, settings), now or datetime.now(UTC)
    report, gone = [], set[LogHour]()
    for find in _past_their_days(lake, now, gone):
        # What is found is what goes: no job changes it meanwhile.
        with lake.locked():
            for removal in find():
                gone |= removal.log_hours
                if removal.files and not dry_run:
                    removal.remove()
                report += removal.described
    report += destroy_old_keys(settings, now, dry_run=dry_run)
    return [*report, *_tidy_folders(lake, kept, dry_run=dry_run)]


def _past_their_days(lake: Lake, now: datetime, gone: Collection[LogHour]) -> Iterator[Callable[[], Iterable[Removal]]]:
    """What to look for, in an order in which what is needed by the next one goes after it.

    ``gone`` are the log hours whose clicks are found before the others are looked for.
    """
    retention, general = retention_of(lake.settings), lake.settings.pipeline.retention

    def before(days: int) -> Hour:
        return Hour.containing(now - timedelta(days=days))

    for name, days in retention.items():
        if days.quarantined_days is not None:
            yield partial(old_texts, lake, name, before(days.quarantined_days))
        if days.clicks_days is not None:
            yield partial(old_clicks, lake, name, before(days.clicks_days))
        if days.landing_days is not None:
            yield partial(old_landing, lake, name, before(days.landing_days), general.landing_archive)
    if general.counts_days is not None:
        yield partial(old_counts, lake, before(general.counts_days).day, gone)
    if general.progress_days is not None:
        yield partial(old_progress, lake, before(general.progress_days).day)


def _tidy_folders(lake: Lake, kept: timedelta, *, dry_run: bool) -> list[str]:
    """Remove files from the tables' folders; a line for each that has something to remove, and one for all."""
    report, files, size = [], 0, 0
    for name in stored_tables(lake.settings.lake):
        table = lake.settings.lake / name
        if name in _LEFT_ALONE:
            continue
        # No job is between looking at a version and reading its files, nor between writing files and their commit.
        with lake.locked(), lake.locked(f"write-{name}"):
            found = unneeded_files(table, kept)
            if found and not dry_run:
                remove_unneeded_files(table, kept)
        if found:
            bytes_ = sum(file.size_bytes for file in found)
            report.append(f"{name}: {len(found):,} files, {bytes_ / 1e6:,.1f} MB")
            files, size = files + len(found), size + bytes_
    what = "would be removed" if dry_run else "removed"
    return [*report, f"replaced or left behind earlier, {what}: {files:,} files, {size / 1e6:,.1f} MB"]

"""What goes: named and measured before it does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from include.hours import Hour, log_hours_predicate
from include.tables import INGEST_ACCOUNTING
from spark_jobs.lake.data_files import DataFile
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.stages import Stage


def removal(
    name: str, rows: int, files: int, size_bytes: int, remove: Callable[[], None], kept: Iterable[str] = ()
) -> Stage:
    """What is to go, with its size; ``kept`` says of all that is as old and stays what it is, and why."""
    lines = [f"  stays: {reason}" for reason in kept]
    if not files:
        return Stage(name, lines)
    return Stage(name, [f"{name}: {rows:,} rows, {files:,} files, {size_bytes / 1e6:,.1f} MB", *lines], remove)


def removal_of_files(
    name: str, files: Iterable[DataFile], remove: Callable[[], None], kept: Iterable[str] = ()
) -> Stage:
    """The removal of data files of tables."""
    files = list(files)
    return removal(name, sum(file.rows for file in files), len(files), sum(file.size for file in files), remove, kept)


def say_removed(lake: Lake, source: str, hours: Sequence[Hour], column: str) -> None:
    """First what is said, in this column of the account, then what is done: nobody is to count half of a log hour."""
    now = datetime.now(UTC)
    changed = [row | {column: now} for row in lake.row_by_hour(INGEST_ACCOUNTING, source, hours).values()]
    lake.replace_rows(INGEST_ACCOUNTING, changed, log_hours_predicate(source, hours))

"""What goes: named and measured before it does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from include.hours import Hour, LogHour, log_hour_of, log_hours_predicate
from include.stored_rows import log_days
from include.tables import INGEST_ACCOUNTING
from spark_jobs.lake.data_files import DataFile
from spark_jobs.lake.lake import Lake


@dataclass(frozen=True)
class Removal:
    """What is to go, with its size; ``remove`` does it, and may be done again if it was killed.

    ``kept`` has a line for all that is as old and stays, with the reason; ``log_hours`` are those of
    which no clicks are left.
    """

    what: str
    rows: int
    files: int
    size_bytes: int
    remove: Callable[[], None]
    kept: tuple[str, ...] = ()
    log_hours: frozenset[LogHour] = frozenset()

    @property
    def described(self) -> list[str]:
        """Lines for people; none if there is nothing to say."""
        size = f"{self.rows:,} rows, {self.files:,} files, {self.size_bytes / 1e6:,.1f} MB"
        return [*([f"{self.what}: {size}"] if self.files else []), *(f"  stays: {reason}" for reason in self.kept)]


def removal_of_files(
    what: str, files: Iterable[DataFile], remove: Callable[[], None], kept: Iterable[str] = ()
) -> Removal:
    """The removal of data files of tables."""
    files = list(files)
    rows, size = sum(file.rows for file in files), sum(file.size for file in files)
    return Removal(what, rows, len(files), size, remove, tuple(kept))


def say_removed(lake: Lake, source: str, hours: Sequence[Hour], column: str) -> None:
    """First what is said, in this column of the account, then what is done: nobody is to count half of a log hour."""
    where = log_days(source, hours)
    rows = lake.read_rows(INGEST_ACCOUNTING, INGEST_ACCOUNTING.column_names, where)
    now, of_these = datetime.now(UTC), set(hours)
    said = [row | {column: now} for row in rows if log_hour_of(row) in of_these]
    lake.replace_rows(INGEST_ACCOUNTING, said, log_hours_predicate(source, hours))

"""What goes: named and measured before it does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from spark_jobs.lake.data_files import DataFile


@dataclass(frozen=True)
class Removal:
    """What is to go, with its size; ``remove`` does it, and may be done again if it was killed.

    ``kept`` has a line for all that is as old and stays, with the reason; ``log_hours`` are those, such as ``web
    2026-03-01T07``, of which no clicks are left.
    """

    what: str
    rows: int
    files: int
    size_bytes: int
    remove: Callable[[], None]
    kept: tuple[str, ...] = ()
    log_hours: frozenset[str] = frozenset()

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

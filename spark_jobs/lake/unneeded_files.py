"""Files in a table's folder that nobody needs: replaced long ago, or left by a job that was killed long ago."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from deltalake import DeltaTable
from pyarrow.fs import FileType

from include.storage import filesystem_of, key_of, names

_HOUR = timedelta(hours=1)


class UnneededFile(NamedTuple):
    """A file, by its path in the table's folder."""

    name: str
    size_bytes: int


def stored_tables(lake: Path) -> list[str]:
    """The names of the tables that there are, in order."""
    return [name for name in sorted(names(lake)) if DeltaTable.is_deltatable(str(lake / name))]


def unneeded_files(table: Path, kept: timedelta) -> list[UnneededFile]:
    """Those that no version has had for that long, and those that are of none and so old: a task may still write one.

    What is of no version is found by listing the folder, so a job that broke off before its commit is tidied too.
    """
    stored = DeltaTable(str(table))
    found = stored.vacuum(_hours(kept), dry_run=True, enforce_retention_duration=False, full=True)
    infos = filesystem_of(table).get_file_info([key_of(table / name) for name in found])
    sized = zip(found, infos, strict=True)
    return [UnneededFile(name, info.size) for name, info in sized if info.type == FileType.File]


def remove_unneeded_files(table: Path, kept: timedelta) -> None:
    """Remove them; Delta's log says so in two commits, also if there are none."""
    DeltaTable(str(table)).vacuum(_hours(kept), dry_run=False, enforce_retention_duration=False, full=True)


def _hours(kept: timedelta) -> int:
    return -(-kept // _HOUR)

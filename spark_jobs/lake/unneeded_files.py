"""Files of a table that nobody needs: replaced long ago, left by a job that was killed, or of former commits."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from deltalake import DeltaTable
from pyarrow.fs import FileType

from include.storage import entries, filesystem_of, key_of, names

LOG = "_delta_log"
_HOUR = timedelta(hours=1)
_LOG_FILE = re.compile(r"^(\d{20})\.")


class UnneededFile(NamedTuple):
    """A file, by its path in the table's folder."""

    name: str
    size_bytes: int


def stored_tables(lake: Path) -> list[str]:
    """The names of the tables that there are, in order."""
    return [name for name in sorted(names(lake)) if DeltaTable.is_deltatable(str(lake / name))]


def newest_versions(lake: Path) -> dict[str, int]:
    """The newest version of each table."""
    return {name: DeltaTable(str(lake / name)).version() for name in stored_tables(lake)}


def unneeded_files(table: Path, kept: timedelta) -> list[UnneededFile]:
    """Those that no version has had for that long, and those that are of none and so old: a task may still write one.

    What is of no version is found by listing the folder, so a job that broke off before its commit is tidied too.
    """
    stored = DeltaTable(str(table))
    names = stored.vacuum(_hours(kept), dry_run=True, enforce_retention_duration=False, full=True)
    infos = filesystem_of(table).get_file_info([key_of(table / name) for name in names])
    sized = zip(names, infos, strict=True)
    return [UnneededFile(name, info.size) for name, info in sized if info.type == FileType.File]


def remove_unneeded_files(table: Path, kept: timedelta) -> None:
    """Remove them; Delta's log says so in two commits, also if there are none."""
    DeltaTable(str(table)).vacuum(_hours(kept), dry_run=False, enforce_retention_duration=False, full=True)


def begin_log_again(table: Path) -> int:
    """Leave of Delta's log a checkpoint of the newest version, by which streams begin again; how many files went."""
    stored = DeltaTable(str(table))
    stored.create_checkpoint()
    former = [
        entry.path
        for entry in entries(table / LOG)
        if (number := _LOG_FILE.match(entry.path.name)) and int(number[1]) < stored.version()
    ]
    for file in former:
        file.unlink(missing_ok=True)
    return len(former)


def _hours(kept: timedelta) -> int:
    return -(-kept // _HOUR)

"""Former versions of tables: their files, and what Delta's log says of them, so that time travel has none any more."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

from deltalake import DeltaTable

from include.storage import entries
from spark_jobs.erasure.matches import Words
from spark_jobs.erasure.search import search
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.unneeded_files import remove_unneeded_files, stored_tables, unneeded_files

_LOG, _NONE = "_delta_log", timedelta(0)
_LOG_FILE = re.compile(r"^(\d{20})\.")


def versions(lake: Lake) -> dict[str, int]:
    """The newest version of each table."""
    return {name: DeltaTable(str(lake.settings.lake / name)).version() for name in stored_tables(lake.settings.lake)}


def remove_former_versions(lake: Lake, name: str, words: Words) -> int:
    """Leave of a table only the files of its newest version; how many files went.

    Nothing may be between writing a file and its commit: hold the lake's lock, and let no stream run.
    """
    table = lake.settings.lake / name
    with lake.locked(f"write-{name}"):
        removed = len(unneeded_files(table, _NONE))
        if removed:
            remove_unneeded_files(table, _NONE)
        # What Delta's log says of former versions, bounds of columns and predicates, seldom names anybody.
        return removed + (_begin_log_again(table) if search([table / _LOG], words).found else 0)


def _begin_log_again(table: Path) -> int:
    """A checkpoint of the newest version is enough; streams that read the table begin again by that."""
    stored = DeltaTable(str(table))
    stored.create_checkpoint()
    former = [
        entry.path
        for entry in entries(table / _LOG)
        if (number := _LOG_FILE.match(entry.path.name)) and int(number[1]) < stored.version()
    ]
    for file in former:
        file.unlink(missing_ok=True)
    return len(former)

"""Former versions of tables: their files, and what Delta's log says of them, so that time travel has none any more."""

from __future__ import annotations

from datetime import timedelta

from spark_jobs.erasure.matches import Words
from spark_jobs.erasure.search import search
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.unneeded_files import LOG, begin_log_again, remove_unneeded_files, unneeded_files

_NONE = timedelta(0)


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
        return removed + (begin_log_again(table) if search([table / LOG], words).matches else 0)

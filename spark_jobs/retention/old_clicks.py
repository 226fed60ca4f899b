"""Clicks, duplicates and quarantined lines past their days: they go by whole log hours, and their accounts say so.

The counts of the click hours that they touch stay as they are from then on: see ``clicks_removed_at``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from include.hours import Hour, LogHour, hours_in_words, log_hour_of
from include.tables import CLICKS, DUPLICATE_CLICKS, INGEST_ACCOUNTING, QUARANTINED_CLICKS, REPLAYED_LINES, Table
from spark_jobs.hours.settled_hours import needed_still
from spark_jobs.hours.touched_hours import removed_log_hours
from spark_jobs.lake.copied_files import copies_of, rows_of
from spark_jobs.lake.data_files import DataFile, has_log_hours
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.stages import Stage
from spark_jobs.retention.removal import removal_of_files, say_removed

_TABLES = (CLICKS, DUPLICATE_CLICKS, QUARANTINED_CLICKS)
_WITH_TEXTS = (QUARANTINED_CLICKS, REPLAYED_LINES)
#: So many log hours' accounts at a time.
_PART = 744
_say_removed = partial(say_removed, column="clicks_removed_at")


def old_clicks(lake: Lake, source: str, before: Hour, gone: set[LogHour]) -> list[Stage]:
    """What is of log hours before that; ``gone`` gets those of which no clicks are left, or would be.

    Hold the lake's lock until it has gone.
    """
    accounts = _accounts(lake, source, before)
    kept = needed_still(lake, source, accounts)
    going = sorted(accounts.keys() - kept.keys())
    # Those that a killed run has left, and what has come to them since.
    left = [hour for hour in removed_log_hours(lake).get(source, ()) if hour < before]
    gone.update(LogHour(source, hour) for hour in going)
    choice = has_log_hours(source, [*going, *left])

    def remove() -> None:
        for start in range(0, len(going), _PART):
            _say_removed(lake, source, going[start : start + _PART])
        for table in _TABLES:
            if lake.data_files(table, choice):
                lake.replace_files(table, [], choice)
        _remove_texts(lake, REPLAYED_LINES, replayed)

    removed = {*going, *left}
    replayed = [file for file in _files_with_texts(lake, REPLAYED_LINES, source, before) if file.log_hour in removed]
    files = [file for table in _TABLES for file in lake.data_files(table, choice)]
    files += replayed
    reasons = (f"{hour}, as {why}" for hour, why in sorted(kept.items()))
    return [removal_of_files(f"clicks of {source}, {hours_in_words(removed)}", files, remove, reasons)]


def old_texts(lake: Lake, source: str, before: Hour) -> list[Stage]:
    """The texts of quarantined lines, also of replayed ones, of log hours before that.

    Where they were read and why they were refused stays.
    """
    files_of_table = {table: list(_files_with_texts(lake, table, source, before)) for table in _WITH_TEXTS}
    hours = sorted({file.log_hour for files in files_of_table.values() for file in files})

    def remove() -> None:
        for table, files in files_of_table.items():
            _remove_texts(lake, table, files)

    files = [file for of_table in files_of_table.values() for file in of_table]
    return [removal_of_files(f"texts of quarantined lines of {source}, {hours_in_words(hours)}", files, remove)]


def _remove_texts(lake: Lake, table: Table, files: Sequence[DataFile]) -> None:
    if files:
        without = copies_of(files, table, lake.folder_for_files(table), {"raw": ""})
        lake.exchange_files(table, [*without], files)


def _accounts(lake: Lake, source: str, before: Hour) -> dict[Hour, dict[str, Any]]:
    """The accounts of log hours before that whose clicks are there."""
    columns = ["log_date", "log_hour", "lines", "click_hours", "clicks_removed_at"]
    rows = lake.read_rows(INGEST_ACCOUNTING, columns, [("source", "=", source), ("log_date", "<=", before.day)])
    by_hour = {log_hour_of(row): row for row in rows}
    return {
        hour: row for hour, row in by_hour.items() if hour < before and row["lines"] and not row["clicks_removed_at"]
    }


def _files_with_texts(lake: Lake, table: Table, source: str, before: Hour) -> Iterator[DataFile]:
    of_days = (pc.field("partition.source") == source) & (pc.field("partition.log_date") <= before.day)
    return (file for file in lake.data_files(table, of_days) if file.log_hour < before and _has_texts(file))


def _has_texts(file: DataFile) -> bool:
    texts = pa.schema([("raw", pa.string())])
    return any(pc.any(pc.not_equal(batch["raw"], "")).as_py() for batch in rows_of(file, texts))

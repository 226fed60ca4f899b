"""The account of log hours that cannot be ingested again: counted from the rows that the lake has of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.hours import Hour, log_hour_of, log_hours_predicate
from include.storage import Entry
from include.stored_rows import as_wanted, of_log_hour
from include.tables import CLICKS, DUPLICATE_CLICKS, INGEST_ACCOUNTING, QUARANTINED_CLICKS, STREAM_BATCHES, Table
from spark_jobs.hours.account import HourAccount, recounted, with_rewritten
from spark_jobs.hours.arrivals_once import TABLE, arrivals_once
from spark_jobs.hours.stream_batches import account_of
from spark_jobs.lake.lake import Lake
from spark_jobs.lines.columns import as_numpy

#: Of an arrival, what is counted.
_COUNTED = pa.schema(
    [
        ("file", pa.string()),
        ("line", pa.int64()),
        ("clicked_at", pa.timestamp("us", "UTC")),
        ("is_out_of_order", pa.bool_()),
        ("first_log_date", pa.date32()),
        ("first_log_hour", pa.int32()),
        ("reason", pa.string()),
        ("replay_id", pa.string()),
    ]
)
#: In the order in which a run writes them: of one that was killed an arrival is what the first one says.
_TABLES = (CLICKS, DUPLICATE_CLICKS, QUARANTINED_CLICKS)
Batch = dict[str, Any]


def recount(lake: Lake, source: str, hours: Collection[Hour]) -> None:
    """Count again what accounts and micro-batches have of these log hours; their click hours are to be counted again.

    Of lines that are left out, and of a stream's duplicates, the lake has no rows: as many as there were are counted,
    so accounts must have all that has come. A log hour whose clicks were removed for their age stays as it was counted.
    """
    now = datetime.now(UTC)
    known = lake.row_by_hour(INGEST_ACCOUNTING, source, hours)
    batches = lake.rows_by_hour(STREAM_BATCHES, source, hours)
    accounts: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    for hour in sorted(known.keys() | batches.keys()):
        account, of_hour = known.get(hour), batches.get(hour, [])
        if account is not None and account["clicks_removed_at"]:
            continue
        of_account, of_batches = _counted(lake, source, hour, account, of_hour)
        parts += [row | counted.of_lines() for row, counted in of_batches]
        if account is not None:
            accounts.append(recounted(account, of_account, now))
    for table, rows in ((STREAM_BATCHES, parts), (INGEST_ACCOUNTING, accounts)):
        if rows:
            lake.replace_rows(table, rows, log_hours_predicate(source, set(map(log_hour_of, rows))))


def say_rewritten(lake: Lake, source: str, files: Mapping[Hour, Sequence[tuple[Entry, Entry]]]) -> None:
    """Say of landed files that were rewritten, each as it was and as it is, that they are read as they were."""
    known = lake.row_by_hour(INGEST_ACCOUNTING, source, files)
    if known:
        rows = [with_rewritten(row, files[hour]) for hour, row in known.items()]
        lake.replace_rows(INGEST_ACCOUNTING, rows, log_hours_predicate(source, known))


def _counted(
    lake: Lake, source: str, hour: Hour, row: Mapping[str, Any] | None, batches: Sequence[Batch]
) -> tuple[HourAccount, list[tuple[Batch, HourAccount]]]:
    """The accounts of a log hour, and of its micro-batches, by the rows that the lake has, each arrival once.

    A row is of the micro-batch that has its file, or partition, and line. What is of none, as files of several may be
    one row, or as the batch had ingested it, is of the last one.
    """
    of_hour = _account(row) if row is not None else HourAccount()
    of_batches = [(batch, _account(batch)) for batch in sorted(batches, key=lambda batch: batch["file"] is None)]
    for arrivals in arrivals_once([_rows(lake, table, source, hour) for table in _TABLES], lake.settings.scratch):
        of_hour.duplicates_of.update(_first_hours(arrivals))
        for account, part in [(of_hour, arrivals), *_parted(arrivals, of_batches)]:
            _add(account, part, hour)
    of_hour.duplicates_of.update(account_of(batches).duplicates_of)
    for batch, account in of_batches:
        account.lines += account_of([batch]).duplicates_of.total()
    of_hour.lines += of_hour.duplicates_of.total()
    for account in (of_hour, *(account for _, account in of_batches)):
        account.lines += account.accepted + account.quarantined.total() + account.left_out.total()
    return of_hour, of_batches


def _account(row: Mapping[str, Any]) -> HourAccount:
    """An account without arrivals, and with what is left out by the row of before; what was touched stays touched."""
    account = HourAccount(click_hours=set(row["click_hours"]))
    account.keep_read(row)
    account.lines = 0
    return account


def _parted(arrivals: pa.Table, batches: Sequence[tuple[Batch, HourAccount]]) -> Iterator[tuple[HourAccount, pa.Table]]:
    """The arrivals of each micro-batch."""
    for row, account in batches[:-1]:
        is_its = np.zeros(len(arrivals), bool)
        if row["first_offset"] is not None:
            line = as_numpy(arrivals["line"])
            is_its = as_numpy(pc.equal(arrivals["file"], row["file"]))
            is_its = is_its & (line >= row["first_offset"]) & (line <= row["last_offset"])
        yield account, arrivals.filter(pa.array(is_its))
        arrivals = arrivals.filter(pa.array(~is_its))
    for _, account in batches[-1:]:
        yield account, arrivals


def _add(account: HourAccount, arrivals: pa.Table, hour: Hour) -> None:
    """Count what are clicks, and what is quarantined."""
    clicks = arrivals.filter(pc.equal(arrivals[TABLE], _TABLES.index(CLICKS)))
    is_late = pc.less(clicks["clicked_at"], pa.scalar(hour.start, clicks["clicked_at"].type))
    reasons = pc.value_counts(arrivals["reason"].drop_null())
    bounds = pc.min_max(clicks["clicked_at"]).as_py()
    account.add(
        HourAccount(
            accepted=len(clicks),
            late=pc.sum(is_late).as_py() or 0,
            out_of_order=pc.sum(clicks["is_out_of_order"]).as_py() or 0,
            first_clicked_at=bounds["min"],
            last_clicked_at=bounds["max"],
            quarantined=Counter({each["values"]: each["counts"] for each in reasons.to_pylist()}),
        )
    )


def _first_hours(arrivals: pa.Table) -> dict[str, int]:
    """Of duplicates, how many there are of each log hour that has the first."""
    duplicates = arrivals.filter(pc.equal(arrivals[TABLE], _TABLES.index(DUPLICATE_CLICKS)))
    hours = duplicates.group_by(["first_log_date", "first_log_hour"]).aggregate([([], "count_all")]).to_pylist()
    return {str(Hour.of(each["first_log_date"], each["first_log_hour"])): each["count_all"] for each in hours}


def _rows(lake: Lake, table: Table, source: str, hour: Hour) -> Iterator[pa.RecordBatch]:
    """What is counted of a table's rows, null where the table has no such column."""
    names = [name for name in _COUNTED.names if name in table.column_names]
    return (as_wanted(rows, _COUNTED) for rows in lake.open_table(table, names, [of_log_hour(hour, source)]))

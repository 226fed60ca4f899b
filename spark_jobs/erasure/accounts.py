"""The account of log hours that cannot be ingested again: counted from the rows that the lake has of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.hours import Hour, log_hour_of, log_hours_predicate
from include.storage import Entry
from include.stored_rows import of_log_hour
from include.tables import CLICKS, DUPLICATE_CLICKS, INGEST_ACCOUNTING, QUARANTINED_CLICKS, STREAM_BATCHES, Table
from spark_jobs.hours.account import HourAccount, recounted, with_rewritten
from spark_jobs.hours.stream_batches import account_of
from spark_jobs.lake.lake import Lake
from spark_jobs.lines.columns import as_numpy
from spark_jobs.lines.repairs import are_at


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
        arrivals = _arrivals(lake, source, hour)
        parts += _batches(arrivals, hour, of_hour)
        if account is not None:
            accounts.append(_recounted(arrivals, hour, account, of_hour, now))
    for table, rows in ((STREAM_BATCHES, parts), (INGEST_ACCOUNTING, accounts)):
        if rows:
            lake.replace_rows(table, rows, log_hours_predicate(source, set(map(log_hour_of, rows))))


def say_rewritten(lake: Lake, source: str, files: Mapping[Hour, Sequence[tuple[Entry, Entry]]]) -> None:
    """Say of landed files that were rewritten, each as it was and as it is, that they are read as they were."""
    known = lake.row_by_hour(INGEST_ACCOUNTING, source, files)
    if known:
        rows = [with_rewritten(row, files[hour]) for hour, row in known.items()]
        lake.replace_rows(INGEST_ACCOUNTING, rows, log_hours_predicate(source, known))


def _recounted(
    arrivals: Arrivals, hour: Hour, row: Mapping[str, Any], batches: Sequence[Mapping[str, Any]], now: datetime
) -> dict[str, Any]:
    account = _account(arrivals.clicks, arrivals.quarantined, hour, row)
    days, hours = (arrivals.duplicates[name].to_pylist() for name in ("first_log_date", "first_log_hour"))
    account.duplicates_of.update(map(str, map(Hour.of, days, hours)))
    account.duplicates_of.update(account_of(batches).duplicates_of)
    account.lines += account.duplicates_of.total()
    return recounted(row, account, now)


def _batches(arrivals: Arrivals, hour: Hour, rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What micro-batches have now: a row of a table is of the one that has its file, or partition, and line.

    What is of none, as files of several may be one row, or as the batch had ingested it, is of the last one.
    """
    clicks, quarantined = arrivals.clicks, arrivals.quarantined
    rows = sorted(rows, key=lambda row: row["file"] is None)
    for row in rows:
        its_clicks, clicks = _parted(clicks, row, is_last=row is rows[-1])
        its_quarantined, quarantined = _parted(quarantined, row, is_last=row is rows[-1])
        account = _account(its_clicks, its_quarantined, hour, row)
        account.lines += account_of([row]).duplicates_of.total()
        yield row | account.of_lines()


def _parted(arrivals: pa.Table, row: Mapping[str, Any], *, is_last: bool) -> tuple[pa.Table, pa.Table]:
    """Those of the micro-batch of this row, and the others."""
    is_its = np.full(len(arrivals), is_last)
    if not is_last and row["first_offset"] is not None:
        line = as_numpy(arrivals["line"])
        is_its = as_numpy(pc.equal(arrivals["file"], row["file"]))
        is_its = is_its & (line >= row["first_offset"]) & (line <= row["last_offset"])
    return arrivals.filter(pa.array(is_its)), arrivals.filter(pa.array(~is_its))


def _account(clicks: pa.Table, quarantined: pa.Table, hour: Hour, row: Mapping[str, Any]) -> HourAccount:
    """The account of these arrivals, and of what is left out by the row of before; what was touched stays touched."""
    account = HourAccount(click_hours=set(row["click_hours"]), quarantined=Counter(quarantined["reason"].to_pylist()))
    account.keep_read(row)
    account.lines = len(clicks) + len(quarantined) + account.left_out.total()
    account.accepted = len(clicks)
    is_late = pc.less(clicks["clicked_at"], pa.scalar(hour.start, clicks["clicked_at"].type))
    account.late = pc.sum(is_late).as_py() or 0
    account.out_of_order = pc.sum(clicks["is_out_of_order"]).as_py() or 0
    account.first_clicked_at, account.last_clicked_at = pc.min_max(clicks["clicked_at"]).as_py().values()
    return account


class Arrivals(NamedTuple):
    """What accounts look at of the rows of a log hour, each arrival once.

    Of an ingest that was killed an arrival may be in several tables, and is what the first one says.
    """

    clicks: pa.Table
    duplicates: pa.Table
    quarantined: pa.Table


def _arrivals(lake: Lake, source: str, hour: Hour) -> Arrivals:
    def rows(table: Table, *columns: str) -> pa.Table:
        return lake.read_table(table, ("file", "line", *columns), of_log_hour(hour, source))

    clicks = rows(CLICKS, "clicked_at", "is_out_of_order")
    duplicates = _elsewhere(rows(DUPLICATE_CLICKS, "first_log_date", "first_log_hour"), clicks)
    quarantined = _elsewhere(_elsewhere(rows(QUARANTINED_CLICKS, "reason"), clicks), duplicates)
    return Arrivals(clicks, duplicates, quarantined)


def _elsewhere(rows: pa.Table, others: pa.Table) -> pa.Table:
    return rows.filter(pa.array(~are_at(rows, others))) if len(rows) and len(others) else rows

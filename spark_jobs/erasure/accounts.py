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
from include.stored_rows import log_days, of_log_hour
from include.tables import CLICKS, DUPLICATE_CLICKS, INGEST_ACCOUNTING, QUARANTINED_CLICKS, STREAM_BATCHES, Table
from spark_jobs.hours.account import HourAccount, left_out_of, replayed, with_rewritten
from spark_jobs.lake.lake import Lake
from spark_jobs.lines.columns import as_numpy


def recount_accounts(lake: Lake, source: str, hours: Collection[Hour], *, is_streamed: bool) -> None:
    """Account again for those of these log hours that have an account; their click hours are to be counted again.

    Of lines that are left out, and of a stream's duplicates, the lake has no rows: as many as there were are counted.
    """
    now = datetime.now(UTC)
    known = {log_hour_of(row): row for row in _rows(lake, INGEST_ACCOUNTING, source, hours)}
    counted = [_recounted(lake, source, hour, row, now, is_streamed=is_streamed) for hour, row in known.items()]
    if counted:
        lake.replace_rows(INGEST_ACCOUNTING, counted, log_hours_predicate(source, known))


def say_rewritten(lake: Lake, source: str, files: Mapping[Hour, Sequence[tuple[Entry, Entry]]]) -> None:
    """Say of landed files that were rewritten, each as it was and as it is, that they are read as they were."""
    known = {log_hour_of(row): row for row in _rows(lake, INGEST_ACCOUNTING, source, files)}
    if known:
        rows = [with_rewritten(row, files[hour]) for hour, row in known.items()]
        lake.replace_rows(INGEST_ACCOUNTING, rows, log_hours_predicate(source, known))


def _recounted(
    lake: Lake, source: str, hour: Hour, row: Mapping[str, Any], now: datetime, *, is_streamed: bool
) -> dict[str, Any]:
    account = _account(*_arrivals(lake, source, hour), hour, row)
    account.duplicates_of = Counter(dict(row["duplicates_of"]))
    if not is_streamed:
        first = _of_hour(lake, DUPLICATE_CLICKS, source, hour, "first_log_date", "first_log_hour").to_pylist()
        account.duplicates_of = Counter(str(Hour.of(one["first_log_date"], one["first_log_hour"])) for one in first)
    others = account.duplicates_of.total() + left_out_of(row).total()
    return replayed(row, account, now) | {"lines": account.lines + others}


def recount_batches(lake: Lake, source: str, hours: Collection[Hour]) -> None:
    """Say of a stream's micro-batches how many rows they have of these log hours now.

    A row of a table is of the micro-batch that has its file, or partition, and line; what is of none, as files of
    several may be one row, is of the last one.
    """
    by_hour: dict[Hour, list[dict[str, Any]]] = {}
    for row in sorted(_rows(lake, STREAM_BATCHES, source, hours), key=lambda row: row["file"] is None):
        by_hour.setdefault(log_hour_of(row), []).append(row)
    counted = [new for hour, of_hour in by_hour.items() for new in _batches(lake, source, hour, of_hour)]
    if counted:
        lake.replace_rows(STREAM_BATCHES, counted, log_hours_predicate(source, by_hour))


def _batches(lake: Lake, source: str, hour: Hour, rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    clicks, quarantined = _arrivals(lake, source, hour)
    for row in rows:
        its_clicks, clicks = _parted(clicks, row, is_last=row is rows[-1])
        its_quarantined, quarantined = _parted(quarantined, row, is_last=row is rows[-1])
        account = _account(its_clicks, its_quarantined, hour, row)
        # Duplicates, and what is left out.
        others = row["lines"] - row["accepted"] - sum(dict(row["quarantined_by_reason"]).values())
        counted = {"lines": account.lines + others, "quarantined_by_reason": dict(account.quarantined)}
        yield {**row, **account.of_clicks(), **counted}


def _parted(arrivals: pa.Table, row: Mapping[str, Any], *, is_last: bool) -> tuple[pa.Table, pa.Table]:
    """Those of the micro-batch of this row, and the others."""
    is_its = np.full(len(arrivals), is_last)
    if not is_last and row["first_offset"] is not None:
        line = as_numpy(arrivals["line"])
        is_its = as_numpy(pc.equal(arrivals["file"], row["file"]))
        is_its = is_its & (line >= row["first_offset"]) & (line <= row["last_offset"])
    return arrivals.filter(pa.array(is_its)), arrivals.filter(pa.array(~is_its))


def _account(clicks: pa.Table, quarantined: pa.Table, hour: Hour, row: Mapping[str, Any]) -> HourAccount:
    """The account of these arrivals, and of no duplicates; what was touched until now, by its row, stays touched."""
    reasons = Counter(quarantined["reason"].to_pylist())
    bounds = pc.min_max(clicks["clicked_at"]).as_py()
    is_late = pc.less(clicks["clicked_at"], pa.scalar(hour.start, clicks["clicked_at"].type))
    return HourAccount(
        lines=len(clicks) + reasons.total(),
        accepted=len(clicks),
        late=pc.sum(is_late).as_py() or 0,
        out_of_order=pc.sum(clicks["is_out_of_order"]).as_py() or 0,
        quarantined=reasons,
        click_hours=set(row["click_hours"]),
        first_clicked_at=bounds["min"],
        last_clicked_at=bounds["max"],
    )


def _arrivals(lake: Lake, source: str, hour: Hour) -> tuple[pa.Table, pa.Table]:
    """What accounts look at of a log hour's clicks and quarantined lines."""
    clicks = _of_hour(lake, CLICKS, source, hour, "file", "line", "clicked_at", "is_out_of_order")
    return clicks, _of_hour(lake, QUARANTINED_CLICKS, source, hour, "file", "line", "reason")


def _of_hour(lake: Lake, table: Table, source: str, hour: Hour, *columns: str) -> pa.Table:
    where = of_log_hour(hour, source)
    return lake.read_table(table, columns, where)


def _rows(lake: Lake, table: Table, source: str, hours: Collection[Hour]) -> list[dict[str, Any]]:
    of_days = log_days(source, hours)
    rows = lake.read_rows(table, table.column_names, of_days) if hours else []
    wanted = set(hours)
    return [row for row in rows if log_hour_of(row) in wanted]

"""The account of log hours that cannot be ingested again: counted from the rows that the lake has of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from include.log_hours import Hour
from include.stored_rows import Filters
from include.tables import CLICKS, DUPLICATE_CLICKS, INGEST_ACCOUNTING, QUARANTINED_CLICKS, STREAM_BATCHES, Table
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.predicates import log_hours_predicate


def recount_accounts(lake: Lake, source: str, hours: Collection[Hour], *, is_streamed: bool) -> None:
    """Account again for those of these log hours that have an account; their click hours are to be counted again.

    Of a stream's duplicates the lake has no rows: as many as there were are counted.
    """
    now = datetime.now(UTC)
    of_days: Filters = [("source", "=", source), ("log_date", "in", sorted({hour.day for hour in hours}))]
    rows = lake.read_rows(INGEST_ACCOUNTING, INGEST_ACCOUNTING.column_names, of_days) if hours else []
    known = {Hour.of(row["log_date"], row["log_hour"]): row for row in rows}
    counted = [
        _recounted(lake, source, hour, known[hour], is_streamed) | {"ingested_at": now}
        for hour in hours
        if hour in known
    ]
    if counted:
        of_these = [Hour.of(row["log_date"], row["log_hour"]) for row in counted]
        lake.replace_rows(INGEST_ACCOUNTING, counted, log_hours_predicate(source, of_these))


def _recounted(lake: Lake, source: str, hour: Hour, row: dict[str, Any], is_streamed: bool) -> dict[str, Any]:
    clicks = _of_hour(lake, CLICKS, source, hour, "clicked_at", "is_out_of_order")
    reasons = Counter(_of_hour(lake, QUARANTINED_CLICKS, source, hour, "reason")["reason"].to_pylist())
    duplicates = Counter(dict(row["duplicates_of"]))
    if not is_streamed:
        first = _of_hour(lake, DUPLICATE_CLICKS, source, hour, "first_log_date", "first_log_hour").to_pylist()
        duplicates = Counter(str(Hour.of(one["first_log_date"], one["first_log_hour"])) for one in first)
    bounds = pc.min_max(clicks["clicked_at"]).as_py()
    is_late = pc.less(clicks["clicked_at"], pa.scalar(hour.start, clicks["clicked_at"].type))
    return {
        **row,
        "lines": len(clicks) + duplicates.total() + reasons.total(),
        "accepted": len(clicks),
        "duplicates": duplicates.total(),
        "duplicates_of": dict(duplicates),
        "quarantined": reasons.total(),
        "quarantined_by_reason": dict(reasons),
        "late": pc.sum(is_late).as_py() or 0,
        "out_of_order": pc.sum(clicks["is_out_of_order"]).as_py() or 0,
        "first_clicked_at": bounds["min"],
        "last_clicked_at": bounds["max"],
    }


def recount_batches(lake: Lake, source: str, hours: Collection[Hour]) -> None:
    """Say of a stream's micro-batches how many rows they have of these log hours now.

    A row of a table is of the micro-batch that has its file, or partition, and line; what is of none, as files of
    several may be one row, is of the last one.
    """
    of_days: Filters = [("source", "=", source), ("log_date", "in", sorted({hour.day for hour in hours}))]
    rows = lake.read_rows(STREAM_BATCHES, STREAM_BATCHES.column_names, of_days) if hours else []
    wanted = set(hours)
    by_hour: dict[Hour, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: row["file"] is None):
        if (hour := Hour.of(row["log_date"], row["log_hour"])) in wanted:
            by_hour.setdefault(hour, []).append(row)
    counted = [new for hour, of_hour in by_hour.items() for new in _batches(lake, source, hour, of_hour)]
    if counted:
        lake.replace_rows(STREAM_BATCHES, counted, log_hours_predicate(source, by_hour))


def _batches(lake: Lake, source: str, hour: Hour, rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    clicks = _of_hour(lake, CLICKS, source, hour, "file", "line", "clicked_at", "is_out_of_order").to_pylist()
    quarantined = _of_hour(lake, QUARANTINED_CLICKS, source, hour, "file", "line", "reason").to_pylist()

    def take(left: list[dict[str, Any]], row: Mapping[str, Any]) -> list[dict[str, Any]]:
        taken = [one for one in left if row is rows[-1] or _is_in(one, row)]
        left[:] = [one for one in left if not (row is rows[-1] or _is_in(one, row))]
        return taken

    for row in rows:
        duplicates = row["lines"] - row["accepted"] - sum(dict(row["quarantined_by_reason"]).values())
        of_row, reasons = take(clicks, row), Counter(one["reason"] for one in take(quarantined, row))
        yield {
            **row,
            "lines": len(of_row) + reasons.total() + duplicates,
            "accepted": len(of_row),
            "quarantined_by_reason": dict(reasons),
            "late": sum(one["clicked_at"] < hour.start for one in of_row),
            "out_of_order": sum(one["is_out_of_order"] for one in of_row),
            "first_clicked_at": min((one["clicked_at"] for one in of_row), default=None),
            "last_clicked_at": max((one["clicked_at"] for one in of_row), default=None),
        }


def _is_in(arrival: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    return (
        arrival["file"] == row["file"]
        and row["first_offset"] is not None
        and bool(row["first_offset"] <= arrival["line"] <= row["last_offset"])
    )


def _of_hour(lake: Lake, table: Table, source: str, hour: Hour, *columns: str) -> pa.Table:
    where = [("source", "=", source), ("log_date", "=", hour.day), ("log_hour", "=", hour.hour)]
    return lake.read_table(table, columns, where)

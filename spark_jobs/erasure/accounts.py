"""The account of log hours whose landed files are gone: counted again from the rows that the lake has of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from include.log_hours import Hour
from include.stored_rows import Filters
from include.tables import CLICKS, DUPLICATE_CLICKS, INGEST_ACCOUNTING, QUARANTINED_CLICKS, Table
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.predicates import log_hours_predicate


def recount_accounts(lake: Lake, source: str, hours: Collection[Hour]) -> None:
    """Account again for those of these log hours that have an account; their click hours are to be counted again."""
    now = datetime.now(UTC)
    of_days: Filters = [("source", "=", source), ("log_date", "in", sorted({hour.day for hour in hours}))]
    rows = lake.read_rows(INGEST_ACCOUNTING, INGEST_ACCOUNTING.column_names, of_days) if hours else []
    known = {Hour.of(row["log_date"], row["log_hour"]): row for row in rows}
    counted = [_recounted(lake, source, hour, known[hour]) | {"ingested_at": now} for hour in hours if hour in known]
    if counted:
        of_these = [Hour.of(row["log_date"], row["log_hour"]) for row in counted]
        lake.replace_rows(INGEST_ACCOUNTING, counted, log_hours_predicate(source, of_these))


def _recounted(lake: Lake, source: str, hour: Hour, row: dict[str, Any]) -> dict[str, Any]:
    def of_hour(table: Table, *columns: str) -> pa.Table:
        where = [("source", "=", source), ("log_date", "=", hour.day), ("log_hour", "=", hour.hour)]
        return lake.read_table(table, columns, where)

    clicks = of_hour(CLICKS, "clicked_at", "click_date", "click_hour", "is_out_of_order")
    first = of_hour(DUPLICATE_CLICKS, "first_log_date", "first_log_hour").to_pylist()
    duplicates = Counter(str(Hour.of(one["first_log_date"], one["first_log_hour"])) for one in first)
    reasons = Counter(of_hour(QUARANTINED_CLICKS, "reason")["reason"].to_pylist())
    bounds = pc.min_max(clicks["clicked_at"]).as_py()
    is_late = pc.less(clicks["clicked_at"], pa.scalar(hour.start, clicks["clicked_at"].type))
    return {
        **row,
        "lines": len(clicks) + len(first) + reasons.total(),
        "accepted": len(clicks),
        "duplicates": len(first),
        "duplicates_of": dict(duplicates),
        "quarantined": reasons.total(),
        "quarantined_by_reason": dict(reasons),
        "late": pc.sum(is_late).as_py() or 0,
        "out_of_order": pc.sum(clicks["is_out_of_order"]).as_py() or 0,
        "first_clicked_at": bounds["min"],
        "last_clicked_at": bounds["max"],
    }

"""Which arrivals of a batch are duplicates: the same event id of one source, again within the lateness window.

Streams drop theirs in ``spark_jobs/ids/first_arrivals.py``.

The first arrival wins, by log hour, then file name, then line. An arrival is a duplicate when an accepted one of the
same id lies at most ``lateness_hours`` log hours before it, or before it in the same log hour. So the outcome depends
on what arrived only, not on how many log hours are ingested together, nor in what order.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.dataset import Dataset
from pyspark.sql import Column
from pyspark.sql import functions as F

from include.duckdb_sql import run_sql
from spark_jobs.lines.columns import as_array

#: What ``decide_duplicates`` takes: ``row_id`` is of arrivals, ``first_hour`` of stored ones.
CANDIDATES = pa.schema(
    [
        ("event_id", pa.string()),
        ("hour_number", pa.int32()),
        ("file", pa.string()),
        ("line", pa.int64()),
        ("row_id", pa.int64()),
        ("first_hour", pa.int32()),
    ]
)

#: What it gives.
DECIDED = pa.schema(
    [
        ("row_id", pa.int64()),
        ("first_hour", pa.int32()),
        ("event_id", pa.string()),
        ("hour_number", pa.int32()),
        ("file", pa.string()),
        ("line", pa.int64()),
    ]
)

# One row an id and log hour, however many arrivals there are: within an hour only the first of them may be accepted.
# Of an accepted arrival and duplicates of it in the same hour, first_hour is the same; but an ingest that was killed
# may leave an accepted arrival beside duplicates of an earlier one: then the least is less than the greatest.
_BY_HOUR = """
    SELECT event_id, hour_number, min({{'file': file, 'line': line, 'row_id': row_id}}) AS first_one,
        max(first_hour) AS was, min(first_hour) AS was_least, count(row_id) > 0 AS is_new
    FROM candidates WHERE {condition} GROUP BY event_id, hour_number ORDER BY event_id, hour_number
"""
_DUPLICATES = """
    SELECT row_id, now AS first_hour, NULL AS event_id, NULL AS hour_number, NULL AS file, NULL AS line
    FROM candidates JOIN by_hour USING (event_id, hour_number)
    WHERE row_id IS NOT NULL AND (row_id != first_one.row_id OR now != hour_number)
"""
_CHANGES = """
    SELECT NULL AS row_id, now AS first_hour, event_id, hour_number, first_one.file, first_one.line
    FROM by_hour WHERE NOT is_new AND hour_number >= {start} AND (now != was OR now != was_least)
"""


def log_hour_number(day: str = "log_date", hour: str = "log_hour") -> Column:
    """The log hour of these columns as hours since 1970-01-01T00, a whole number."""
    return F.unix_date(day) * 24 + F.col(hour)


def decide_duplicates(
    candidates: pa.Table | Dataset, condition: str = "true", *, ingested: range, lateness_hours: int
) -> pa.Table:
    """The duplicates among arrivals, and what changes by them in what is stored.

    ``candidates`` are rows of ``CANDIDATES``: of an id all, or none if it comes once. Arrivals are of the log hours
    that are ``ingested``, and have a unique ``row_id``. Stored ones are of other log hours, accepted or not: they have
    ``first_hour``, the log hour of the accepted arrival, which is its own hour for an accepted one. Those before the
    ingested ones stay as they are. Ids are never null. Only ids for which the SQL ``condition`` is true are looked at.

    Returns rows of ``DECIDED``: ``row_id`` and ``first_hour`` of each duplicate, else null; and, with ``row_id`` null,
    one row for each ``event_id`` and ``hour_number`` of stored ones whose ``first_hour`` is another now: of the
    arrivals in that hour, ``file`` and ``line`` are the first's. Memory grows with the ids and their log hours, and by
    12 bytes a duplicate.
    """
    by_hour = run_sql(_BY_HOUR.format(condition=condition), candidates=candidates)
    accepted = pa.array(_accepted_hours(by_hour, ingested.start, lateness_hours), pa.int32())
    by_hour = by_hour.append_column("now", accepted)
    duplicates = run_sql(_DUPLICATES, candidates=candidates, by_hour=by_hour)
    changes = run_sql(_CHANGES.format(start=ingested.start), by_hour=by_hour)
    return pa.concat_tables([duplicates.cast(DECIDED), changes.cast(DECIDED)])


def _accepted_hours(by_hour: pa.Table, fixed_before: int, lateness_hours: int) -> Iterator[int | None]:
    """Walk the log hours of each id in their order: of each the last one until then of which an arrival is accepted."""
    ids = as_array(by_hour["event_id"])
    is_same_id = [False, *pc.equal(ids[1:], ids[:-1]).to_pylist()] if len(ids) else []
    last = None
    for same, hour, was in zip(is_same_id, by_hour["hour_number"].to_pylist(), by_hour["was"].to_pylist(), strict=True):
        if not same:
            last = None
        is_accepted = was == hour if hour < fixed_before else last is None or hour - last > lateness_hours
        if is_accepted:
            last = hour
        yield last

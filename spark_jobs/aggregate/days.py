"""Daily tables: the days that have given hours are computed again from the hourly tables, and replaced whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.counting import count_table
from include.days import Day, days_of, hours_of
from include.hours import Hour, click_hour_of, click_hours_predicate, hours_in_words
from include.stored_rows import ARROW_TYPES
from include.tables import QUARTERS, Table, daily_table
from spark_jobs.aggregate.day_counts import OF_QUARTERS, counts_per_day
from spark_jobs.aggregate.small_keys import without_few
from spark_jobs.engine.steps import in_parallel, step
from spark_jobs.engine.worker_tasks import TASK_BYTES, parts_by_size
from spark_jobs.lake.data_files import has_days, may_have_click_hours
from spark_jobs.lake.lake import Lake

#: Of the hours' files, so many bytes at a time: what Spark sorts is on its disk. A month of a small site is one query
#: for each table; a day is never split.
MOST_BYTES = 256 << 20
#: Days whose hours' files have no more bytes are written by the job itself: a task's share.
FEW_BYTES = TASK_BYTES
#: Days that are named in a line.
MOST_NAMED = 5
#: Days that could not be computed, each with an hour that it has in part and that was counted without its quarters,
#: before the time zone was configured.
Lacking = set[tuple[Day, Hour]]


def count_days(lake: Lake, hours: Iterable[Hour]) -> Lacking:
    """Compute the days of these click hours, in all configured time zones and per each key. Hold the lake's lock.

    A file of an hour that is lost does not stop the others: the suite ``layout`` finds it.
    """
    day_values = {"counted_at": datetime.now(UTC)}
    tables = [count_table(key) for key in lake.settings.pipeline.counts]
    lacking: Lacking = set()
    for days in days_in_parts(lake, tables, days_of(lake.settings.pipeline.time_zones, hours)):
        of_days = dict.fromkeys(days, day_values)
        lacking.update(*in_parallel(lake.spark, *(partial(_count, lake, table, of_days) for table in tables)))
    return lacking


def _count(lake: Lake, table: Table, days: Mapping[Day, Mapping[str, Any]]) -> Lacking:
    return replace_days(lake, table, days, read_hours(lake, table, days, leave_out_lost=True))


def described_lacking(lacking: Lacking) -> list[str]:
    """A line on days that could not be computed, and what to do; none if there are none."""
    if not lacking:
        return []
    days, hours = sorted({day for day, _ in lacking}), {hour for _, hour in lacking}
    listed = ", ".join(map(str, days[:MOST_NAMED])) + (", …" if len(days) > MOST_NAMED else "")
    return [
        f"  days left out: {len(days)} ({listed}), which begin or end within hours that were counted before their time "
        f"zone was configured: {hours_in_words(hours)}; run these hours again from aggregate on"
    ]


def read_hours(lake: Lake, hourly: Table, days: Iterable[Day], *, leave_out_lost: bool = False) -> DataFrame:
    """The rows of the hours of these days."""
    return lake.read_files(hourly, may_have_click_hours(hourly, hours_of(days)), leave_out_lost=leave_out_lost)


def days_in_parts(lake: Lake, hourly: Iterable[Table], days: Sequence[Day]) -> Iterator[list[Day]]:
    """The days, in order, so many at a time that their hours' files have no more bytes than that."""
    sizes: Counter[Hour] = Counter()
    for table in hourly:
        for file in lake.data_files(table, may_have_click_hours(table, hours_of(days))):
            sizes[file.click_hour] += file.size
    return parts_by_size(((day, sum(sizes[hour] for hour in day.hours)) for day in days), MOST_BYTES)


def replace_days(
    lake: Lake, hourly: Table, days: Mapping[Day, Mapping[str, Any]], counts: DataFrame, *, smallest_visitors: int = 0
) -> Lacking:
    """Compute these days of the daily table that follows from the hourly one, in one query.

    Returns the days that cannot be computed, which have no rows.

    ``days`` gives, of each day, what the daily table says of it beside the counts; ``counts`` are the rows of their
    hours. Fewer visitors than ``smallest_visitors`` are not shown, and no sketch then.
    """
    daily, key = daily_table(hourly), hourly.key[-1]
    column_types = {column.name: column.type for column in daily.columns if column.name in next(iter(days.values()))}
    lacking = _lacking(lake, daily, days, counts)
    left_out = {day for day, _ in lacking}
    if computed := {day: of_day for day, of_day in days.items() if day not in left_out}:
        rows = counts_per_day(counts, hours_frame(lake, computed, column_types), key)
        if smallest_visitors:
            rows = without_few(rows, smallest_visitors)
        size = sum(file.size for file in lake.data_files(hourly, may_have_click_hours(hourly, hours_of(days))))
        lake.replace(daily, rows, has_days(days), are_few=size <= FEW_BYTES)
    else:
        lake.replace_files(daily, [], has_days(days))
    return lacking


def _lacking(lake: Lake, daily: Table, days: Iterable[Day], counts: DataFrame) -> Lacking:
    in_part = [(day, hour) for day in days for hour in day.quarters]
    if not in_part:
        return set()
    without = counts.where(click_hours_predicate({hour for _, hour in in_part})).where(F.col(QUARTERS.name).isNull())
    with step(lake.spark, f"find hours without quarters of {daily.name}"):
        rows = without.select("click_date", "click_hour").distinct().collect()
    hours = {click_hour_of(row.asDict()) for row in rows}
    return {(day, hour) for day, hour in in_part if hour in hours}


def hours_frame(
    lake: Lake, days: Mapping[Day, Mapping[str, Any]], column_types: Mapping[str, str] | None = None
) -> DataFrame:
    """One row per hour of each day: ``click_date`` and ``click_hour``, UTC, ``time_zone`` and ``day``, its date there.

    Of hours that a day has in part ``OF_QUARTERS``, null of others; if there are none, they are no columns. Of what is
    said of the days, those with a type in ``column_types`` are further columns. There is one day at least.
    """
    column_types = column_types or {}
    types = {"click_date": "DATE", "click_hour": "INT", "time_zone": "STRING", "day": "DATE", **column_types}
    if any(day.quarters for day in days):
        types |= dict.fromkeys(OF_QUARTERS, "INT")
    rows = []
    for day, of_day in days.items():
        of_quarters = {
            hour: dict(zip(OF_QUARTERS, (quarters.start + 1, len(quarters)), strict=True))
            for hour, quarters in day.quarters.items()
        }
        rows += [
            {"click_date": hour.day, "click_hour": hour.hour, "time_zone": day.time_zone, "day": day.date}
            | {name: of_day[name] for name in column_types}
            | of_quarters.get(hour, {})
            for hour in day.hours
        ]
    schema = pa.schema([(name, ARROW_TYPES[type_]) for name, type_ in types.items()])
    return lake.spark.createDataFrame(pa.Table.from_pylist(rows, schema))

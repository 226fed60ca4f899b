"""Counts per day from the counts of its hours: sums, and unions of the visitors' sketches; clicks are not read."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.tables import QUARTERS
from spark_jobs.aggregate.sums import SKETCH, estimated_visitors, summed_counts

#: In ``hours_frame``, of an hour that a day has in part: the first of its quarters, from 1 on, and how many it has.
OF_QUARTERS = ("first_quarter", "quarter_count")
_COUNTS = ("click_count", "bot_click_count", SKETCH)


def counts_per_day(counts: DataFrame, hours: DataFrame, key: str) -> DataFrame:
    """One row per (time_zone, click_date, key), the date being that of the time zone.

    ``counts`` has a row per (click_date, click_hour, key), UTC. ``hours`` says of which days each hour is: it is that
    of ``hours_frame``, whose further columns say something of the day and come along. An hour that a day has in part
    has quarters.
    """
    of_day = ["time_zone", "day"]
    wanted = ["click_date", "click_hour", key, *_COUNTS, QUARTERS.name]
    day_columns = [name for name in hours.columns if name not in ("click_date", "click_hour", *of_day, *OF_QUARTERS)]
    return (
        with_days(counts.select(*wanted), F.broadcast(hours), in_parts=has_parts(hours))
        .groupBy(*of_day, key)
        .agg(
            *summed_counts(),
            *(F.any_value(name).alias(name) for name in day_columns),
        )
        .withColumn("visitor_count", estimated_visitors())
        .withColumnRenamed("day", "click_date")
    )


def with_days(rows: DataFrame, hours: DataFrame, *, in_parts: bool) -> DataFrame:
    """The rows of click hours, each once for every day that has its hour; of one that it has in part, its quarters.

    These are a row each, without those that have no clicks; or, where the row lacks ``quarters``, one whose counts are
    null. ``in_parts`` says whether any day has hours in part.
    """
    # A join, for a condition on the days would be other generated code for other days.
    if not in_parts:
        return rows.drop(QUARTERS.name).join(hours, ["click_date", "click_hour"])
    of_days = rows.join(hours, ["click_date", "click_hour"])
    counts = [name for name in _COUNTS if name in rows.columns]
    quarters = F.transform(
        F.slice(QUARTERS.name, *OF_QUARTERS),
        lambda quarter: F.struct(*(quarter[name].alias(name) for name in counts)),
    )
    parts = F.when(F.col(OF_QUARTERS[0]).isNull(), F.array(F.struct(*counts))).otherwise(quarters)
    others = [name for name in of_days.columns if name not in (*counts, QUARTERS.name, *OF_QUARTERS)]
    return of_days.select(*others, F.inline_outer(parts)).where("coalesce(click_count, 1) > 0")


def has_parts(hours: DataFrame) -> bool:
    """Whether days of ``hours_frame`` have hours in part."""
    return OF_QUARTERS[0] in hours.columns

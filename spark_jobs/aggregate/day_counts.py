"""Counts per day from the counts of its hours: sums, and unions of the visitors' sketches; clicks are not read."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.aggregate.sums import SKETCH, estimated_visitors, summed_counts


def counts_per_day(counts: DataFrame, hours: DataFrame, key: str) -> DataFrame:
    """One row per (time_zone, click_date, key), the date being that of the time zone.

    ``counts`` has a row per (click_date, click_hour, key), UTC. ``hours`` says of which days each hour is: it is that
    of ``hours_frame``, whose further columns say something of the day and come along.
    """
    of_day = ["time_zone", "day"]
    wanted = ["click_date", "click_hour", key, "click_count", "bot_click_count", SKETCH]
    day_columns = [name for name in hours.columns if name not in ("click_date", "click_hour", *of_day)]
    return (
        with_days(counts.select(*wanted), F.broadcast(hours))
        .groupBy(*of_day, key)
        .agg(
            *summed_counts(),
            *(F.any_value(name).alias(name) for name in day_columns),
        )
        .withColumn("visitor_count", estimated_visitors())
        .withColumnRenamed("day", "click_date")
    )


def with_days(rows: DataFrame, hours: DataFrame) -> DataFrame:
    """The rows of click hours, each once for every day that has its hour."""
    # A join, for a condition on the days would be other generated code for other days.
    return rows.join(hours, ["click_date", "click_hour"])

"""Clicks counted per click hour and key: where they are read, or by instances that they are sent to."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.tables import QUARTERS, SKETCH_LG_K
from spark_jobs.aggregate.groupings import INSTANCE, Grouping, with_instance
from spark_jobs.aggregate.sums import SKETCH, estimated_visitors, summed_counts, summed_quarters

_CLICK_HOUR = ("click_date", "click_hour")


def count_per_instance(
    clicks: DataFrame, key: str, grouping: Grouping, hours_of_two_days: Collection[int] = ()
) -> DataFrame:
    """One row per (instance_id, click_date, click_hour, key); click_count >= 1.

    ``click_count`` has all clicks that the instance was sent, ``bot_click_count`` those of crawlers;
    ``visitor_sketch`` the distinct visitors among the others. Clicks without a visitor count as clicks only; clicks
    with a null key are counted as one key. When the grouping keeps the key whole these are its counts; else
    they are parts, for ``merge_counts``. If the grouping combines, the instance is the one that adds up the counts.

    ``hours_of_two_days`` are the hours, UTC, 0 to 23, within which a day of some time zone ends. If there are some, the
    rows have a column ``quarters``: the same counts of each quarter of these hours, null for all others.
    """
    human_visitor = F.when(~F.col("is_bot"), F.col("visitor_id"))
    counts = [
        F.count(F.lit(1)).alias("click_count"),
        F.count_if("is_bot").alias("bot_click_count"),
        F.hll_sketch_agg(human_visitor, SKETCH_LG_K).alias(SKETCH),
    ]
    if hours_of_two_days:
        is_of_two_days = F.col("click_hour").isin(sorted(hours_of_two_days))
        quarters = F.array(*(_of_quarter(number, is_of_two_days, human_visitor) for number in range(4)))
        counts.append(F.when(is_of_two_days, quarters).alias(QUARTERS.name))
    if grouping.combines:
        # Spark counts in each task before anything moves.
        return with_instance(grouping.repartition(clicks.groupBy(*_CLICK_HOUR, key).agg(*counts)))
    partitioned = grouping.repartition(clicks)
    if grouping.keeps_whole([*_CLICK_HOUR, key]):
        # No row moves to be counted: the instance that has a count is the one that was sent its clicks.
        return with_instance(partitioned.groupBy(*_CLICK_HOUR, key).agg(*counts))
    return with_instance(partitioned).groupBy(INSTANCE, *_CLICK_HOUR, key).agg(*counts)


def _of_quarter(number: int, is_counted: Column, human_visitor: Column) -> Column:
    is_in = is_counted & (F.floor(F.minute("clicked_at") / 15) == number)
    return F.struct(
        F.count_if(is_in).alias("click_count"),
        F.count_if(is_in & F.col("is_bot")).alias("bot_click_count"),
        F.hll_sketch_agg(F.when(is_in, human_visitor), SKETCH_LG_K).alias(SKETCH),
    )


def merge_counts(parts: DataFrame, key: str) -> DataFrame:
    """One row per (click_date, click_hour, key): the instances' parts added up, their sketches united."""
    quarters = [summed_quarters()] if QUARTERS.name in parts.columns else []
    return parts.groupBy(*_CLICK_HOUR, key).agg(*summed_counts(), *quarters)


def complete_counts(parts: DataFrame, key: str, grouping: Grouping) -> DataFrame:
    """What the grouping's instances counted, merged where it splits keys; ``visitor_count`` is from the sketch."""
    counts = parts if grouping.keeps_whole([*_CLICK_HOUR, key]) else merge_counts(parts, key)
    return counts.withColumn("visitor_count", estimated_visitors())

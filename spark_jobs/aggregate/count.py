"""Clicks counted per click hour and key, by instances that each count the clicks dealt to them."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.tables import SKETCH_LG_K
from spark_jobs.aggregate.groupings import INSTANCE, Grouping, with_instance

_CLICK_HOUR = ("click_date", "click_hour")


def count_per_instance(clicks: DataFrame, key: str, grouping: Grouping) -> DataFrame:
    """One row per (instance_id, click_date, click_hour, key); click_count >= 1.

    ``click_count`` has all clicks that the instance was dealt, ``bot_click_count`` those of crawlers;
    ``visitor_sketch`` the distinct visitors among the others. Clicks without a visitor are counted, but are nobody's;
    clicks with a null key are counted as one key. When the grouping keeps the key whole these are its counts; else
    they are parts, for ``merge_counts``.
    """
    dealt = grouping.deal(clicks)
    human_visitor = F.when(~F.col("is_bot"), F.col("visitor_id"))
    counts = [
        F.count(F.lit(1)).alias("click_count"),
        F.count_if("is_bot").alias("bot_click_count"),
        F.hll_sketch_agg(human_visitor, SKETCH_LG_K).alias("visitor_sketch"),
    ]
    if grouping.keeps_whole([*_CLICK_HOUR, key]):
        # No row moves to be counted: the instance that has a count is the one that was dealt its clicks.
        return with_instance(dealt.groupBy(*_CLICK_HOUR, key).agg(*counts))
    return with_instance(dealt).groupBy(INSTANCE, *_CLICK_HOUR, key).agg(*counts)


def merge_counts(parts: DataFrame, key: str) -> DataFrame:
    """One row per (click_date, click_hour, key): the instances' parts added up, their sketches united."""
    return parts.groupBy(*_CLICK_HOUR, key).agg(
        F.sum("click_count").alias("click_count"),
        F.sum("bot_click_count").alias("bot_click_count"),
        F.hll_union_agg("visitor_sketch").alias("visitor_sketch"),
    )


def count_clicks_by(clicks: DataFrame, key: str, grouping: Grouping) -> DataFrame:
    """One row per (click_date, click_hour, key), counted by the grouping's instances and merged where it must be."""
    return complete_counts(count_per_instance(clicks, key, grouping), key, grouping)


def complete_counts(parts: DataFrame, key: str, grouping: Grouping) -> DataFrame:
    """What the grouping's instances counted, merged where it splits keys; ``visitor_count`` is from the sketch."""
    counts = parts if grouping.keeps_whole([*_CLICK_HOUR, key]) else merge_counts(parts, key)
    return counts.withColumn("visitor_count", F.hll_sketch_estimate("visitor_sketch"))


def load_per_instance(key: str, instances: int) -> Sequence[Column]:
    """What to observe of ``count_per_instance``: for each instance i rows_i, keys_i and busiest_i.

    ``keys`` are its counts, of one click hour and key each; ``busiest`` is the largest, as its count and its key.
    """
    columns = []
    for instance in range(instances):
        is_there = F.col(INSTANCE) == instance
        columns += [
            F.sum(F.when(is_there, F.col("click_count"))).alias(f"rows_{instance}"),
            F.count_if(is_there).alias(f"keys_{instance}"),
            F.max(F.when(is_there, F.col("click_count"))).alias(f"busiest_rows_{instance}"),
            F.max_by(F.col(key).cast("string"), F.when(is_there, F.col("click_count"))).alias(f"busiest_{instance}"),
        ]
    return columns

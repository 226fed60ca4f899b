"""Clicks counted per click hour and key."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.tables import SKETCH_LG_K


def count_clicks_by(clicks: DataFrame, key: str) -> DataFrame:
    """One row per (click_date, click_hour, key); click_count >= 1.

    ``click_count`` has all clicks, ``bot_click_count`` those of crawlers. ``visitor_count`` estimates the distinct
    visitors among the others from ``visitor_sketch``; clicks without a visitor are counted, but are nobody's.
    """
    human_visitor = F.when(~F.col("is_bot"), F.col("visitor_id"))
    return (
        clicks.groupBy("click_date", "click_hour", key)
        .agg(
            F.count(F.lit(1)).alias("click_count"),
            F.count_if("is_bot").alias("bot_click_count"),
            F.hll_sketch_agg(human_visitor, SKETCH_LG_K).alias("visitor_sketch"),
        )
        .withColumn("visitor_count", F.hll_sketch_estimate("visitor_sketch"))
    )

"""Clicks that arrived after a later click of the same key."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F


def find_out_of_order(clicks: DataFrame, key: str) -> DataFrame:
    """One row per (source, log_date, log_hour, key) that has clicks out of order.

    A click is out of order when one of the same key before it in the same file, or topic partition, and log hour
    happened later; nothing is said of clicks of different files. ``out_of_order`` >= 1; ``largest_delay`` is by how
    many seconds the latest click before was ahead, at most. Clicks with a null key are one key.
    """
    place = ["source", "log_date", "log_hour"]
    before = Window.partitionBy(*place, "file", key).orderBy("line").rowsBetween(Window.unboundedPreceding, -1)
    seconds = F.unix_micros("clicked_at") / F.lit(1_000_000)
    ahead = F.max(seconds).over(before) - seconds
    return (
        clicks.withColumn("ahead", ahead)
        .groupBy(*place, key)
        .agg(
            F.count(F.lit(1)).alias("clicks"),
            F.count_if(F.col("ahead") > 0).alias("out_of_order"),
            F.max("ahead").alias("largest_delay"),
        )
        .where("out_of_order > 0")
        .select(
            *place,
            F.lit(key).alias("key_name"),
            F.col(key).cast("string").alias("key"),
            "clicks",
            "out_of_order",
            "largest_delay",
        )
    )

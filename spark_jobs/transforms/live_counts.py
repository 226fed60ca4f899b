"""Counts of clicks per minute and hour while they come, under a watermark."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

#: More hours than a micro-batch has: with as many bins, a histogram of hours is an exact count.
_MOST_HOURS = 10_000


def count_live(clicks: DataFrame, key: str, watermark_minutes: int) -> DataFrame:
    """One row per source, window and key, as the live tables have it but for ``counted_at``; in update mode.

    A minute's window stays open as long as its hour's: until the watermark, ``watermark_minutes`` behind the latest
    click seen, has passed the hour's end. Clicks that come later are left out. A null key is a key of its own.
    """
    hour, minute = F.date_trunc("hour", "clicked_at"), F.date_trunc("minute", "clicked_at")
    windows = F.array(
        F.struct(hour.alias("window_start"), F.lit(3600).alias("window_seconds")),
        F.struct(minute.alias("window_start"), F.lit(60).alias("window_seconds")),
    )
    return (
        clicks.select("source", "clicked_at", "is_bot", key)
        .withWatermark("clicked_at", f"{watermark_minutes} minutes")
        .withColumn("window", F.explode(windows))
        # Spark's own window is what lets it forget an hour that is over; ours are counted in it.
        .groupBy("source", F.window("clicked_at", "1 hour").alias("open"), "window", key)
        .agg(F.count(F.lit(1)).alias("click_count"), F.count_if("is_bot").alias("bot_click_count"))
        .select(
            "source",
            F.to_date("window.window_start").alias("click_date"),
            F.hour("window.window_start").alias("click_hour"),
            "window.window_start",
            "window.window_seconds",
            key,
            "click_count",
            "bot_click_count",
        )
    )


def clicks_per_hour() -> Column:
    """As JSON, an array of ``x``, hours since 1970, and ``y``, how many clicks happened in that hour.

    Source: Hive's numeric histogram, which is exact as long as it has a bin for each distinct value.
    """
    hour = F.floor(F.unix_seconds("clicked_at") / 3600).cast("double")
    return F.to_json(F.histogram_numeric(hour, F.lit(_MOST_HOURS)))


def clicks_per_instance(instance: Column, instances: int) -> Column:
    """As JSON, an array of how many clicks each instance has, from instance 0 on."""
    return F.to_json(F.array(*(F.count_if(instance == number) for number in range(instances))))

"""Counts of clicks per minute and hour while they come, by instances that each count the clicks sent to them."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.aggregate.groupings import INSTANCE, Grouping, with_instance

#: More than a micro-batch has hours, or instances: with as many bins, a histogram of them is an exact count.
_MOST_VALUES = 10_000


def repartition_live(clicks: DataFrame, key: str, grouping: Grouping) -> DataFrame:
    """The clicks of each micro-batch, sent to the grouping's instances: what is counted of them, and ``instance_id``.

    Raises:
        UsageError: if the grouping goes by a column that clicks do not have.
    """
    grouping.require_columns(clicks)
    return with_instance(grouping.repartition(clicks)).select("source", "clicked_at", "is_bot", key, INSTANCE)


def count_live(clicks: DataFrame, key: str, watermark_minutes: int) -> DataFrame:
    """One row per source, window and key, as the live tables have it but for ``counted_at``; in update mode.

    A minute's window stays open as long as its hour's: until the watermark, ``watermark_minutes`` behind the latest
    click seen, has passed the hour's end. Clicks that come later are left out. A null key is a key of its own.

    ``clicks`` are ``repartition_live``'s. An instance counts its part of a micro-batch, and the state, which Spark
    keeps by a hash of window and key, adds these parts to the counts so far. So any grouping gives the same counts.
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


def load_of_batch(grouping: Grouping) -> Sequence[Column]:
    """What to observe of ``repartition_live``'s clicks: ``per_hour``, ``per_instance`` and ``instances``.

    The first two are JSON, arrays of ``x``, an hour since 1970 or an instance from 0, and ``y``, clicks of it; an ``x``
    may be there more than once. The third is how many instances the grouping has at least: 0 for FIFO, whose are those
    that read the micro-batch. All are null without clicks.
    """
    hour = F.floor(F.unix_seconds("clicked_at") / 3600)
    return [
        _exact_counts(hour).alias("per_hour"),
        _exact_counts(F.col(INSTANCE)).alias("per_instance"),
        F.max(F.lit(grouping.least_instances)).alias("instances"),
    ]


def _exact_counts(value: Column) -> Column:
    """Source: Hive's numeric histogram, which is exact as long as it has a bin for each distinct value."""
    return F.to_json(F.histogram_numeric(value.cast("double"), F.lit(_MOST_VALUES)))

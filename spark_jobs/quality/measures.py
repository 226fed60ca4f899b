"""What the quality checks look at: small facts about large tables, all from one pass of Spark.

Each function gives a frame of facts, declared in ``expectations/facts.py`` but for the key; ``engine.fact_frames``
collects several by one Spark action.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from expectations.checks import RowRule
from include.tables import QUARTERS
from spark_jobs.aggregate.day_counts import has_parts, with_days

_LOG_HOUR = ("source", "log_date", "log_hour")
_CLICK_HOUR = ("click_date", "click_hour")
#: Of so many clicks of a source the URLs are looked at, so much of each.
SOME_URLS, _URL_CHARACTERS = 1000, 2048


def click_facts(clicks: DataFrame, rules: Iterable[RowRule]) -> DataFrame:
    """One row per source, log hour and click hour of the clicks, with what the rules count; times in microseconds."""
    return clicks.groupBy(*_LOG_HOUR, *_CLICK_HOUR).agg(
        F.count(F.lit(1)).alias("clicks"),
        _counted(rules),
        F.unix_micros(F.min("clicked_at")).alias("first_clicked_micros"),
        F.unix_micros(F.max("clicked_at")).alias("last_clicked_micros"),
    )


def url_facts(clicks: DataFrame, every: int) -> DataFrame:
    """One row per source and log hour: ``distinct_urls``, about, by one URL in ``every``.

    There is none where no such URL is. A URL of two click hours is two: so it is in the counts.
    """
    # Chosen by another hash than that by which they are counted.
    return (
        clicks.where(F.xxhash64("url", F.lit(every)) % every == 0)
        .groupBy(*_LOG_HOUR)
        .agg((F.approx_count_distinct(F.struct(*_CLICK_HOUR, "url")) * every).alias("distinct_urls"))
    )


def some_urls(clicks: DataFrame, every: int) -> DataFrame:
    """One row per source: ``some_urls``, the beginnings of those of some clicks, of one click in ``every``."""
    # Drawn by hash, not by chance: the same ones each time.
    drawn = "xxhash64(url, clicked_at)"
    urls = f"min_by(substring(url, 1, {_URL_CHARACTERS}), {drawn}, {SOME_URLS})"
    return clicks.where(f"{drawn} % {every} = 0").groupBy("source").agg(F.expr(urls).alias("some_urls"))


def quarantine_facts(quarantined: DataFrame) -> DataFrame:
    """One row per source, log hour and reason of the quarantined lines."""
    return quarantined.groupBy(*_LOG_HOUR, "reason").agg(F.count(F.lit(1)).alias("quarantined_lines"))


def duplicate_facts(duplicates: DataFrame) -> DataFrame:
    """One row per source and log hour that has duplicates, counted."""
    return duplicates.groupBy(*_LOG_HOUR).agg(F.count(F.lit(1)).alias("duplicates"))


def count_facts(counts: DataFrame, key: str, rules: Iterable[RowRule], *, with_quarters: bool = False) -> DataFrame:
    """One row per click hour of a table of counts, with what the rules count; times in microseconds since 1970."""
    return counts.groupBy(*_CLICK_HOUR).agg(
        *_contents(key, with_quarters=with_quarters),
        F.count_distinct(F.struct(key)).alias("keys"),
        F.min("click_count").alias("smallest_count"),
        F.max("click_count").alias("largest_count"),
        _counted(rules),
        F.unix_micros(F.max("counted_at")).alias("counted_micros"),
    )


def _counted(rules: Iterable[RowRule]) -> Column:
    counts = [(F.lit(rule.name), F.count_if(F.expr(rule.counted))) for rule in rules if rule.counted is not None]
    return F.create_map(*chain(*counts)).alias("counted")


def published_facts(published: DataFrame, key: str, *, with_quarters: bool = False) -> DataFrame:
    """One row per click hour of a published table: what must be that of the computed one."""
    return published.groupBy(*_CLICK_HOUR).agg(*_contents(key, with_quarters=with_quarters))


def _contents(key: str, *, with_quarters: bool) -> list[Column]:
    # A sum of hashes, each below 2**32: the rows' order is no matter, and a row that comes twice shows.
    counts = ["click_count", "bot_click_count"]
    of_quarters = [f"{QUARTERS.name}.{name}" for name in counts] if with_quarters else []
    row_hash = F.xxhash64(key, *counts, "visitor_count", *of_quarters).bitwiseAND(F.lit(0xFFFFFFFF))
    return [
        F.sum("click_count").alias("clicks"),
        F.count(F.lit(1)).alias("rows"),
        F.sum(row_hash).alias("rows_hash"),
    ]


def day_facts(counts: DataFrame, days: DataFrame, hours: DataFrame, key: str) -> DataFrame:
    """One row per time zone and day: what a daily table has, and what the counts of its hours come to.

    ``days`` are the daily table's rows, ``counts`` those of the hours of these days, ``hours`` says which those are, as
    ``with_days`` takes it. ``keys_that_differ`` are those with other clicks, or other clicks by crawlers; and all that
    a day has of which an hour was counted without the quarters that are needed.
    """
    columns = [F.col("time_zone"), F.col("day"), F.col(key).cast("string").alias("key")]
    columns += map(F.col, ("click_count", "bot_click_count", "counted_at"))
    counted = counts.select(
        "click_date", "click_hour", key, "click_count", "bot_click_count", QUARTERS.name, "counted_at"
    )
    in_parts = has_parts(hours)
    # Not by a broadcast, which would be a Spark job of its own.
    of_hours = with_days(counted, hours.hint("shuffle_hash"), in_parts=in_parts).select(
        *columns, F.lit(True).alias("is_hour")
    )
    of_days = days.withColumnRenamed("click_date", "day").select(*columns, F.lit(False).alias("is_hour"))

    def sums(name: str) -> list[Column]:
        return [
            F.coalesce(F.sum(F.when(side, F.col(name))), F.lit(0)).alias(f"{where}_{name}")
            for where, side in (("hour", F.col("is_hour")), ("day", ~F.col("is_hour")))
        ]

    by_key = (
        of_hours.unionAll(of_days)
        .groupBy("time_zone", "day", "key")
        .agg(
            *sums("click_count"),
            *sums("bot_click_count"),
            F.count_if(~F.col("is_hour")).alias("rows"),
            F.bool_or(F.col("click_count").isNull()).alias("lacks_quarters"),
            F.max(F.when(F.col("is_hour"), F.col("counted_at"))).alias("hours_counted_at"),
            F.min(F.when(~F.col("is_hour"), F.col("counted_at"))).alias("day_counted_at"),
        )
    )
    differs = (
        (F.col("rows") != 1)
        | (F.col("hour_click_count") != F.col("day_click_count"))
        | (F.col("hour_bot_click_count") != F.col("day_bot_click_count"))
    )
    keys_that_differ = F.count_if(differs)
    if in_parts:
        keys_that_differ = F.when(F.bool_or("lacks_quarters"), F.count_if(F.col("rows") > 0)).otherwise(
            keys_that_differ
        )
    return by_key.groupBy("time_zone", "day").agg(
        keys_that_differ.alias("keys_that_differ"),
        F.sum("hour_click_count").alias("hour_clicks"),
        F.sum("day_click_count").alias("day_clicks"),
        F.unix_micros(F.max("hours_counted_at")).alias("hours_counted_micros"),
        F.unix_micros(F.min("day_counted_at")).alias("day_counted_micros"),
    )


def live_facts(live: DataFrame) -> DataFrame:
    """One row per source and click hour of a live table: the clicks of its windows of an hour."""
    hourly = live.where("window_seconds = 3600")
    return hourly.groupBy("source", *_CLICK_HOUR).agg(F.sum("click_count").alias("clicks"))


def click_history_facts(counts: DataFrame) -> DataFrame:
    """One row per click hour, of ``clicks_by_country_hourly``: its clicks and visitors.

    Visitors are summed over countries, so that no sketch need be read: who comes from two in an hour is two.
    """
    return counts.groupBy(*_CLICK_HOUR).agg(
        F.sum("click_count").alias("clicks"), F.sum("visitor_count").alias("visitors")
    )

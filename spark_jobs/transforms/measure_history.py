"""Facts about earlier hours, and about those that are held against them."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def click_history(counts: DataFrame) -> DataFrame:
    """One row per click hour, of ``clicks_by_country_hourly``.

    ``visitors`` are summed over countries, so that no sketch need be read: who comes from two in an hour is two.
    """
    hour = _hour("click_date", "click_hour").alias("hour")
    return counts.groupBy(hour).agg(F.sum("click_count").alias("clicks"), F.sum("visitor_count").alias("visitors"))


def accounting_history(accounting: DataFrame) -> DataFrame:
    """One row per source and log hour, of ``ingest_accounting``; ``has_landed`` is false for one that never came."""
    return accounting.select(
        "source",
        _hour("log_date", "log_hour").alias("hour"),
        "lines",
        "quarantined",
        (F.col("is_closed") | (F.col("files") > 0)).alias("has_landed"),
        "sampled_lines",
        "sampled_fields",
    )


def _hour(day: str, hour: str) -> Column:
    """Such as 2026-03-01T05."""
    return F.concat_ws("T", F.date_format(day, "yyyy-MM-dd"), F.lpad(F.col(hour).cast("string"), 2, "0"))

"""Clicks of people by country and URL, of which each visitor has given at most so many."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F


def bounded_counts(clicks: DataFrame, most: int, salt: str) -> DataFrame:
    """One row per (country_code, url), of these clicks as a whole: ``click_count`` >= 1.

    Crawlers' clicks and those of nobody are left out. Of a visitor with more than ``most`` clicks those count whose
    hashes, by the salt, are smallest: neither arrival nor anything that a visitor can choose decides, and the same
    clicks give the same counts.
    """
    hashed_columns = ("source", "event_id", "clicked_at", "country_code", "url")
    of_people = clicks.where("NOT is_bot AND visitor_id IS NOT NULL").select("visitor_id", *hashed_columns)
    # What is not in the hash is in no count either: which of two equal clicks is taken does not matter.
    drawn = F.sha2(F.to_json(F.struct(F.lit(salt).alias("salt"), *hashed_columns)), 256)
    in_order = Window.partitionBy("visitor_id").orderBy(drawn)
    taken = of_people.withColumn("drawn", F.row_number().over(in_order)).where(F.col("drawn") <= most)
    return taken.groupBy("country_code", "url").agg(F.count(F.lit(1)).alias("click_count"))

"""The busiest keys among published rows, of hours or of days."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.aggregate.sums import estimated_visitors, summed_counts
from spark_jobs.engine.steps import step
from spark_jobs.publish.report import KeyCount


def busiest_keys(rows: DataFrame, key: str, most: int) -> list[KeyCount]:
    """So many keys, most clicks first, equal ones by key; ``key`` is a column without nulls."""
    counts = rows.groupBy(key).agg(
        F.sum("click_count").alias("click_count"), F.sum("bot_click_count").alias("bot_click_count")
    )
    with step(rows.sparkSession, f"read the busiest {key}"):
        busiest = counts.orderBy(F.desc("click_count"), key).limit(most).collect()
    if not busiest:
        return []
    # Sketches are united of these alone: they are large.
    united = (
        rows.where(F.col(key).isin([row[key] for row in busiest]))
        .groupBy(key)
        .agg(*summed_counts())
        .select(key, estimated_visitors().alias("visitor_count"))
    )
    with step(rows.sparkSession, f"read the visitors of the busiest {key}"):
        visitors = {row[key]: row["visitor_count"] for row in united.collect()}
    return [KeyCount(row[key], row["click_count"], row["bot_click_count"], visitors[row[key]]) for row in busiest]

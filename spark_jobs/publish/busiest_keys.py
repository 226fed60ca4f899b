"""The busiest keys among published rows, of hours or of days."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.aggregate.sums import SKETCH, estimated_visitors, summed_counts
from spark_jobs.engine.steps import step
from spark_jobs.publish.report import KeyCount


def busiest_keys(rows: DataFrame, key: str, most: int) -> list[KeyCount]:
    """So many keys, most clicks first, equal ones by key; ``key`` is a column without nulls."""
    clicks = rows.groupBy(key).agg(F.sum("click_count").alias("click_count"))
    # Sketches are united of these alone: they are large.
    busiest = clicks.orderBy(F.desc("click_count"), key).limit(most).select(key)
    of_busiest = rows.join(F.broadcast(busiest), key, "left_semi").groupBy(key)
    # Published without sketches they are known of a single row alone.
    only_count = F.when(F.count(F.lit(1)) == 1, F.max("visitor_count")).alias("only_count")
    counts = of_busiest.agg(*summed_counts(), only_count)
    visitors = F.coalesce("only_count", estimated_visitors())
    with step(rows.sparkSession, f"read the busiest {key}"):
        counted = counts.withColumn("visitor_count", visitors).drop(SKETCH).collect()
    by_clicks = sorted(counted, key=lambda row: (-row["click_count"], row[key]))
    return [KeyCount(row[key], row["click_count"], row["bot_click_count"], row["visitor_count"]) for row in by_clicks]

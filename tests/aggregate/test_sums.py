"""Visitors are estimated from who came, not from the order in which sketches saw them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from include.tables import SKETCH_LG_K

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def sketches(spark: SparkSession, visitors: int, seed: int) -> DataFrame:
    """The sketches of some tasks, of which each saw a part of the visitors in an order of its own."""
    from pyspark.sql import functions as F

    rows = spark.range(visitors).select(F.format_string("visitor %d", "id").alias("visitor"))
    parts = rows.withColumn("part", F.floor(F.rand(seed) * (1 + seed % 5))).orderBy(F.rand(seed + 1))
    return parts.groupBy("part").agg(F.hll_sketch_agg("visitor", SKETCH_LG_K).alias("visitor_sketch"))


@pytest.mark.parametrize("visitors", [1, 380, 600, 2500, 20_000])
def test_the_same_visitors_are_as_many_in_whatever_order_they_came(spark: SparkSession, visitors: int) -> None:
    from pyspark.sql import functions as F

    from spark_jobs.aggregate.sums import estimated_visitors, summed_counts

    counted = "1 AS click_count", "0 AS bot_click_count", "visitor_sketch"
    estimates, plainly = set(), set()
    for seed in range(10):
        united = sketches(spark, visitors, seed).selectExpr(*counted).agg(*summed_counts())
        (row,) = united.select(estimated_visitors().alias("ours"), F.hll_sketch_estimate("visitor_sketch")).collect()
        estimates.add(row["ours"])
        plainly.add(row[1])
    (estimated,) = estimates
    assert abs(estimated - visitors) <= 3 * 0.01625 * visitors
    # What this is for: from some 400 visitors on the plain estimate is not the same.
    assert (len(plainly) > 1) == (visitors >= 600)

"""Which URLs gained or lost most clicks from one day to the next: a join of two co-partitioned sides."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.aggregate.groupings import FieldsGrouping, require_whole


def clicks_per_url(counts: DataFrame, grouping: FieldsGrouping) -> DataFrame:
    """One row per URL of the hourly counts: ``click_count``, partitioned by the grouping, whose key is the URL.

    The sum is taken where the rows were sent to, so nothing crosses between instances after that.

    Raises:
        UsageError: if the grouping puts one URL on several instances.
    """
    require_whole(grouping, ["url"], "clicks per URL")
    return (
        grouping.repartition(counts.select("url", "click_count"))
        .groupBy("url")
        .agg(F.sum("click_count").alias("clicks"))
    )


def movers(day: DataFrame, day_before: DataFrame) -> DataFrame:
    """One row per URL of either day: ``clicks``, ``clicks_before`` (0 without any) and ``change``.

    Both sides come from ``clicks_per_url``. Partitioned by URL into the same number of instances, they are
    joined where they are; else Spark partitions one of them again.
    """
    clicks, before = (F.coalesce(name, F.lit(0)) for name in ("clicks", "clicks_before"))
    both = day.join(day_before.withColumnRenamed("clicks", "clicks_before"), "url", "full")
    return both.select("url", clicks.alias("clicks"), before.alias("clicks_before"), (clicks - before).alias("change"))


def biggest(moved: DataFrame, most: int) -> DataFrame:
    """The rows with the largest change, up or down, that have any; by URL among equals."""
    return moved.where("change != 0").orderBy(F.desc(F.abs("change")), "url").limit(most)

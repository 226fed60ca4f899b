"""What groupings do to clicks: how the clicks fall on keys, and what each instance really has of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.aggregate.groupings import INSTANCE, CustomGrouping, Grouping, SaltedFieldsGrouping, with_instance

#: Keys that can be named in any case, to be split beside the hot ones.
_BUSIEST = 16


def key_distribution(clicks: DataFrame, key: str, instance_counts: Sequence[int]) -> DataFrame:
    """How the clicks fall on keys, in rows of three kinds; what a kind does not have is null in it.

    ``keys`` is set in one row, with all ``clicks``. ``instances`` and ``bucket`` are set in a row for each number of
    instances and each bucket, pmod(hash(key), instances), that has clicks. The others are the busiest keys, at least
    as many as can have more than an even part: ``key`` as text (null: the clicks without one) and ``key_hash``.
    """
    per_key = (
        clicks.groupBy(key)
        .agg(F.count(F.lit(1)).alias("clicks"))
        .select(F.col(key).cast("string").alias("key"), F.hash(key).alias("key_hash"), "clicks")
    )
    busiest = per_key.orderBy(F.desc("clicks"), "key").limit(max(*instance_counts, _BUSIEST))
    totals = per_key.agg(F.sum("clicks").alias("clicks"), F.count(F.lit(1)).alias("keys"))
    buckets = (
        per_key.select("clicks", "key_hash", F.explode(F.array(*map(F.lit, instance_counts))).alias("instances"))
        .groupBy("instances", F.pmod("key_hash", "instances").alias("bucket"))
        .agg(F.sum("clicks").alias("clicks"))
    )
    return busiest.unionByName(totals, allowMissingColumns=True).unionByName(buckets, allowMissingColumns=True)


def loads(clicks: DataFrame, key: str, groupings: Sequence[Grouping]) -> DataFrame:
    """One row per grouping (``grouping``: its place in ``groupings``) and instance that it sent clicks to.

    ``rows`` are the instance's clicks; ``split_keys`` summed over the instances are the keys on more than one of them.
    ``out_of_order`` are the clicks that the instance handles after a later click of the same key, by ``clicked_at``,
    in the order in which the rows reach it. Every grouping partitions the clicks itself. Clicks with
    a null key are one key. Memory does not grow with the keys: rows are sorted, which spills.
    """
    return reduce(
        DataFrame.unionAll, (_load(clicks, key, grouping, number) for number, grouping in enumerate(groupings))
    )


def load_per_instance(key: str, grouping: Grouping, instances: int) -> Sequence[Column]:
    """What to observe of ``count_per_instance``: for each instance i rows_i, keys_i and busiest_i.

    ``rows`` are those that moved to it: clicks, or counts if the grouping combines. ``keys`` are its counts, of one
    click hour and key each; ``busiest`` is the key with most rows in a click hour, as their number and the key, and
    null if the grouping combines.
    """
    columns = []
    for instance in range(instances):
        is_there = F.col(INSTANCE) == instance
        clicks = F.when(is_there, F.col("click_count"))
        busiest = F.lit(None) if grouping.combines else clicks
        columns += [
            F.count_if(is_there).alias(f"rows_{instance}")
            if grouping.combines
            else F.sum(clicks).alias(f"rows_{instance}"),
            F.count_if(is_there).alias(f"keys_{instance}"),
            F.max(busiest).alias(f"busiest_rows_{instance}"),
            F.max_by(F.col(key).cast("string"), busiest).alias(f"busiest_{instance}"),
        ]
    return columns


def _load(clicks: DataFrame, key: str, grouping: Grouping, number: int) -> DataFrame:
    partitioned = with_instance(grouping.repartition(_needed(clicks, key, grouping))).select(
        INSTANCE,
        # Rises in each partition: the order in which its instance handles the rows.
        F.monotonically_increasing_id().alias("position"),
        "key_hash",
        "clicked_at",
    )
    by_key = Window.partitionBy("key_hash").orderBy(INSTANCE, "position")
    # Sorted alike, so that one sort serves both.
    by_instance = Window.partitionBy("key_hash", INSTANCE).orderBy("position")
    before = F.lag(INSTANCE).over(by_key)
    latest = F.max("clicked_at").over(by_instance.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    seen = partitioned.select(
        INSTANCE,
        (latest > F.col("clicked_at")).alias("is_late"),
        # The key's first row on its second instance: there is one for each key that has one.
        ((before != F.col(INSTANCE)) & (before == F.first(INSTANCE).over(by_key))).alias("is_split"),
    )
    return (
        seen.groupBy(INSTANCE)
        .agg(
            F.count(F.lit(1)).alias("rows"),
            F.count_if("is_split").alias("split_keys"),
            F.count_if("is_late").alias("out_of_order"),
        )
        .select(F.lit(number).alias("grouping"), INSTANCE, "rows", "split_keys", "out_of_order")
    )


def _needed(clicks: DataFrame, key: str, grouping: Grouping) -> DataFrame:
    """Of each click only what it is partitioned by, and what is asked of it afterwards."""
    key_hash = F.xxhash64(key).alias("key_hash")
    match grouping:
        case CustomGrouping():
            return clicks.withColumn("key_hash", key_hash)
        case SaltedFieldsGrouping():
            # It goes by a hash of the whole row: a hash of the click does as well as all its columns.
            return clicks.select(*_once(key, "clicked_at"), key_hash, F.xxhash64(*clicks.columns).alias("click_hash"))
    return clicks.select(*_once(key, "clicked_at"), key_hash)


def _once(*names: str) -> list[Column]:
    return [F.col(name) for name in dict.fromkeys(names)]

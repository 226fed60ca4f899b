"""Which clicks are duplicates: the same event id of one source, again within the lateness window.

The first arrival wins, by log hour, then file name, then line. An arrival is a duplicate when an accepted one of the
same id lies at most ``lateness_hours`` log hours before it. So the outcome depends on what arrived only, not on how
many log hours are ingested at once.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_BEFORE_ALL = -1_000_000_000


def log_hour_number() -> Column:
    """The log hour as hours since 1970-01-01T00, a whole number."""
    return F.unix_date("log_date") * 24 + F.col("log_hour")


def find_duplicates(arrivals: DataFrame, accepted_before: DataFrame, lateness_hours: int) -> DataFrame:
    """One row per duplicate among ``arrivals``: ``row_id``, and ``first_hour``, the winner's log hour as a number.

    ``arrivals`` has ``event_id``, ``hour_number``, ``file``, ``line`` and a unique ``row_id``; ``accepted_before`` has
    ``event_id`` and ``hour_number`` of clicks accepted in other log hours. Ids are never null.
    """
    none = F.lit(None)
    everything = arrivals.select(
        "event_id", "hour_number", "file", "line", "row_id", F.xxhash64("event_id").alias("id_hash")
    ).unionByName(
        accepted_before.select(
            "event_id",
            "hour_number",
            none.cast("string").alias("file"),
            none.cast("bigint").alias("line"),
            none.cast("bigint").alias("row_id"),
            F.xxhash64("event_id").alias("id_hash"),
        )
    )
    # Few ids come twice: find those by their 8-byte hash, and look at whole ids for them alone.
    twice = (
        everything.groupBy("id_hash")
        .agg(F.count(F.lit(1)).alias("times"), F.count("row_id").alias("arrivals"))
        .where("times > 1 AND arrivals > 0")
        .select("id_hash")
    )
    by_id = (
        everything.join(F.broadcast(twice), "id_hash")
        .groupBy("event_id")
        .agg(F.sort_array(F.collect_list(F.struct("hour_number", "file", "line", "row_id"))).alias("arrivals"))
        .where(F.size("arrivals") > 1)
    )
    return by_id.select(F.explode(_duplicates_of_one_id(F.col("arrivals"), lateness_hours)).alias("duplicate")).select(
        "duplicate.*"
    )


def _duplicates_of_one_id(arrivals: Column, lateness_hours: int) -> Column:
    """Walk the sorted arrivals of one id, remembering the log hour of the last accepted one."""
    start = F.struct(
        F.lit(_BEFORE_ALL).alias("accepted_hour"),
        F.array().cast("array<struct<row_id: bigint, first_hour: int>>").alias("duplicates"),
    )

    def step(state: Column, arrival: Column) -> Column:
        was_accepted_before = arrival["row_id"].isNull()
        is_duplicate = ~was_accepted_before & (arrival["hour_number"] - state["accepted_hour"] <= F.lit(lateness_hours))
        dropped = F.array(F.struct(arrival["row_id"].alias("row_id"), state["accepted_hour"].alias("first_hour")))
        return F.struct(
            F.when(is_duplicate, state["accepted_hour"]).otherwise(arrival["hour_number"]).alias("accepted_hour"),
            F.when(is_duplicate, F.concat(state["duplicates"], dropped))
            .otherwise(state["duplicates"])
            .alias("duplicates"),
        )

    return F.aggregate(arrivals, start, step, lambda state: state["duplicates"])

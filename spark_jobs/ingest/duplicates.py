"""Which arrivals of a batch are duplicates: the same event id of one source, again within the lateness window.

Streams drop theirs in ``spark_jobs/stream/duplicates.py``.

The first arrival wins, by log hour, then file name, then line. An arrival is a duplicate when an accepted one of the
same id lies at most ``lateness_hours`` log hours before it, or before it in the same log hour. So the outcome depends
on what arrived only, not on how many log hours are ingested at once, nor in what order.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

#: The columns of ``decide_duplicates``.
DECIDED = "row_id BIGINT, first_hour INT, event_id STRING, hour_number INT, file STRING, line BIGINT"
_BEFORE_ALL = -1_000_000_000
_ID_AND_HOUR = ["event_id", "hour_number"]


def log_hour_number(day: str = "log_date", hour: str = "log_hour") -> Column:
    """The log hour of these columns as hours since 1970-01-01T00, a whole number."""
    return F.unix_date(day) * 24 + F.col(hour)


def decide_duplicates(candidates: DataFrame, ingested: range, lateness_hours: int) -> DataFrame:
    """The duplicates among arrivals, and what changes by them in what is stored.

    ``candidates`` are rows of ``repeated_ids.CANDIDATES``: of an id all, or none if it comes once. Arrivals are of the
    log hours that are ``ingested``, and have a unique ``row_id``. Stored ones are of other log hours, accepted or not:
    they have ``first_hour``, the log hour of the accepted arrival, which is its own hour for an accepted one. Those
    before the ingested ones stay as they are. Ids are never null.

    Returns ``row_id`` and ``first_hour`` of each duplicate, else null; and, with ``row_id`` null, one row for each
    ``event_id`` and ``hour_number`` of stored ones whose ``first_hour`` is another now: of the arrivals in that hour,
    ``file`` and ``line`` are the first's.
    """
    decided = _decide(candidates, ingested.start, lateness_hours)
    duplicates = (
        candidates.where("row_id IS NOT NULL")
        .join(decided.where("is_new").select(*_ID_AND_HOUR, "first", F.col("now").alias("wins")), _ID_AND_HOUR)
        .where("row_id != first.row_id OR wins != hour_number")
        .select("row_id", F.col("wins").alias("first_hour"))
    )
    is_changed = (F.col("now") != F.col("was")) | (F.col("now") != F.col("was_least"))
    changes = decided.where(~F.col("is_new") & (F.col("hour_number") >= ingested.start) & is_changed)
    changed = changes.select(*_ID_AND_HOUR, "first.file", "first.line", F.col("now").alias("first_hour"))
    return duplicates.unionByName(changed, allowMissingColumns=True)


def _decide(candidates: DataFrame, fixed_before: int, lateness_hours: int) -> DataFrame:
    """For each id and log hour ``was`` and ``now``: the log hour of the arrival that is, or will be, accepted.

    One row an id and hour, however many arrivals there are: within an hour the ``first`` of them may be accepted only.
    Where an ingest was killed, ``was_least`` may be less than ``was``.
    """
    by_hour = candidates.groupBy(*_ID_AND_HOUR).agg(
        F.min(F.struct("file", "line", "row_id")).alias("first"),
        # Of an accepted arrival and duplicates of it in the same hour all are the same; but an ingest that was killed
        # may leave an accepted arrival beside duplicates of an earlier one.
        F.max("first_hour").alias("was"),
        F.min("first_hour").alias("was_least"),
        (F.count("row_id") > 0).alias("is_new"),
    )
    hours = F.sort_array(F.collect_list(F.struct("hour_number", "was", "was_least", "is_new", "first")))
    by_id = by_hour.groupBy("event_id").agg(hours.alias("hours"))
    accepted = _accepted_hours(F.col("hours"), fixed_before, lateness_hours).alias("accepted")
    each = by_id.select("event_id", accepted, F.explode("hours").alias("one")).select("event_id", "accepted", "one.*")
    now = F.array_max(F.filter("accepted", lambda hour: hour <= F.col("hour_number")))
    return each.withColumn("now", now).drop("accepted")


def _accepted_hours(hours: Column, fixed_before: int, lateness_hours: int) -> Column:
    """Walk the log hours of one id in their order; those in which an arrival of it is accepted."""
    start = F.struct(F.lit(_BEFORE_ALL).alias("last"), F.array().cast("array<int>").alias("accepted"))

    def step(state: Column, hour: Column) -> Column:
        number = hour["hour_number"]
        is_accepted = F.when(number < fixed_before, hour["was"] == number).otherwise(
            number - state["last"] > F.lit(lateness_hours)
        )
        more = F.struct(number.alias("last"), F.concat(state["accepted"], F.array(number)).alias("accepted"))
        return F.when(is_accepted, more).otherwise(state)

    return F.aggregate(hours, start, step, lambda state: state["accepted"])

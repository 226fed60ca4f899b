"""Arrivals of which it is decided whether they are duplicates: what they come to, and what changes of stored ones."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.hours import Hour
from include.tables import CLICKS, DUPLICATE_CLICKS
from spark_jobs.ids.duplicates import log_hour_number
from spark_jobs.ingest.outcomes import OUTCOME, count_outcomes
from spark_jobs.lake.lake import Lake

_FIRST_LOG_HOUR = ("first_log_date", "first_log_hour")
#: Where an arrival is.
PLACE = ["log_date", "log_hour", "file", "line"]


@dataclass(frozen=True)
class DecidedClicks:
    """The lines of log hours that are ingested, and the ``stored`` arrivals of later ones; None if these stay.

    ``arrivals`` are all lines; ``decided`` is of ``decide_duplicates``.
    """

    arrivals: DataFrame
    decided: DataFrame
    stored: DataFrame | None

    def outcomes(self) -> DataFrame:
        """The rows of ``count_outcomes`` of all of them."""
        lines = decided_lines(self.arrivals, self.decided).select(*OUTCOME)
        if self.stored is not None:
            is_duplicate = F.when(~F.col("is_accepted"), F.col("first_hour"))
            stored = self.stored.withColumns({"reason": F.lit(None).cast("string"), "first_hour": is_duplicate})
            lines = lines.unionByName(stored.select(*OUTCOME))
        return count_outcomes(lines)

    def stored_accepted(self) -> DataFrame | None:
        """One row per stored arrival that is accepted now, as ``clicks`` declares it; None if these stay."""
        return None if self.stored is None else self.stored.where("is_accepted").select(*CLICKS.column_names)

    def stored_duplicates(self, *, with_former: bool = False) -> DataFrame | None:
        """One row per stored arrival that is a duplicate now, as ``duplicate_clicks`` declares it; None if these stay.

        With ``with_former`` also those that are none any more, and all as they are stored.
        """
        if self.stored is None:
            return None
        rows = self.stored.where("NOT is_accepted")
        if with_former:
            # What a duplicate is of changes with the clicks: before, nobody would find that it is none any more.
            of_stored = F.when(F.col("was_accepted"), F.col("first_hour")).otherwise(F.col("was"))
            rows = self.stored.where("NOT (is_accepted AND was_accepted)").withColumn("first_hour", of_stored)
        first_day = F.date_from_unix_date(F.floor(F.col("first_hour") / 24).cast("int"))
        first = {"first_log_date": first_day, "first_log_hour": F.col("first_hour") % 24}
        return rows.withColumns(first).select(*DUPLICATE_CLICKS.column_names)

    def places_of_duplicates(self) -> DataFrame:
        """``PLACE`` of the lines that are duplicates."""
        return self.arrivals.join(_duplicates(self.decided), "row_id").select(*PLACE)


def decided_lines(arrivals: DataFrame, decided: DataFrame) -> DataFrame:
    """The arrivals, with ``first_hour`` of those that are duplicates; ``decided`` is of ``decide_duplicates``."""
    return arrivals.join(_duplicates(decided), "row_id", "left")


def _duplicates(decided: DataFrame) -> DataFrame:
    return decided.where("row_id IS NOT NULL").select("row_id", "first_hour")


def stored_as_decided(lake: Lake, source: str, hours: Collection[Hour], decided: DataFrame) -> DataFrame:
    """All arrivals that are stored of these log hours, as ``clicks`` declares them, once each.

    Beside them ``first_hour``, the log hour of the accepted arrival of their id, and ``is_accepted``, now; ``was`` and
    ``was_accepted`` are the same until now. ``decided`` is of ``decide_duplicates``.
    """
    clicks = lake.read_log_hours(CLICKS, source, hours)
    # Of an ingest that was killed the same arrival may be in both. Then it is a click.
    duplicates = lake.read_log_hours(DUPLICATE_CLICKS, source, hours).join(clicks.select(*PLACE), PLACE, "left_anti")
    stored = clicks.withColumns({"was": log_hour_number(), "was_accepted": F.lit(True)}).unionByName(
        duplicates.select(
            *CLICKS.column_names, log_hour_number(*_FIRST_LOG_HOUR).alias("was"), F.lit(False).alias("was_accepted")
        )
    )
    changes = decided.where("row_id IS NULL").select(
        "event_id",
        "hour_number",
        F.col("first_hour").alias("now"),
        F.struct("file", "line").alias("first"),
    )
    is_first = (F.col("now") == F.col("hour_number")) & (F.col("first") == F.struct("file", "line"))
    return (
        stored.withColumn("hour_number", log_hour_number())
        .join(changes, ["event_id", "hour_number"], "left")
        .withColumns(
            {
                "first_hour": F.coalesce("now", "was"),
                "is_accepted": F.when(F.col("now").isNull(), F.col("was_accepted")).otherwise(is_first),
            }
        )
        .select(*CLICKS.column_names, "first_hour", "is_accepted", "was", "was_accepted")
    )

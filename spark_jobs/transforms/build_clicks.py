"""Arrivals, less the duplicates: the rows of ``clicks``; and those of ``quarantined_clicks``."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.tables import CLICKS, QUARANTINED_CLICKS


def accepted_lines(arrivals: DataFrame, duplicates: DataFrame) -> DataFrame:
    """The arrivals that become clicks: well-formed, and the first of their ids."""
    return arrivals.where("reason IS NULL").join(F.broadcast(duplicates.select("row_id")), "row_id", "left_anti")


def build_clicks(accepted: DataFrame, source: str) -> DataFrame:
    """One row per accepted line, as ``clicks`` declares it."""
    columns = {"source": F.lit(source), "click_date": F.to_date("clicked_at"), "click_hour": F.hour("clicked_at")}
    return accepted.withColumns(columns).select(*CLICKS.column_names)


def quarantine(arrivals: DataFrame, source: str) -> DataFrame:
    """One row per rejected line, as ``quarantined_clicks`` declares it."""
    rejected = arrivals.where("reason IS NOT NULL").withColumn("source", F.lit(source))
    return rejected.select(*QUARANTINED_CLICKS.column_names)

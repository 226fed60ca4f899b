"""Arrivals as rows of ``clicks`` and of ``quarantined_clicks``."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.tables import CLICKS, QUARANTINED_CLICKS
from spark_jobs.lines.kept import LEFT_OUT


def build_clicks(accepted: DataFrame, source: str, *further: str) -> DataFrame:
    """One row per well-formed line, as ``clicks`` declares it, and further columns that it has."""
    columns = {"source": F.lit(source), "click_date": F.to_date("clicked_at"), "click_hour": F.hour("clicked_at")}
    return accepted.withColumns(columns).select(*CLICKS.column_names, *further)


def quarantine(arrivals: DataFrame, source: str) -> DataFrame:
    """One row per rejected line, as ``quarantined_clicks`` declares it."""
    rejected = arrivals.where(~F.startswith("reason", F.lit(LEFT_OUT))).withColumn("source", F.lit(source))
    return rejected.select(*QUARANTINED_CLICKS.column_names)

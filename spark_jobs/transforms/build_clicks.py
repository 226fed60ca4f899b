"""Well-formed lines, less their duplicates, with what was looked up for them: the rows of ``clicks``."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.tables import CLICKS, QUARANTINED_CLICKS, UNKNOWN_COUNTRY


def accepted_lines(parsed: DataFrame, duplicates: DataFrame) -> DataFrame:
    """The parsed lines that become clicks: well-formed, and the first arrivals of their ids."""
    return parsed.where("reason IS NULL").join(F.broadcast(duplicates.select("row_id")), "row_id", "left_anti")


def build_clicks(accepted: DataFrame, crawlers: DataFrame, clients: DataFrame | None, source: str) -> DataFrame:
    """One row per accepted line, as ``clicks`` declares it.

    ``crawlers`` has one ``user_agent`` per row, crawlers' ones only. ``clients``, for sources whose country or visitor
    must be looked up, has one row per ``client_address``, ``user_agent`` and ``click_date`` with ``country_code`` and
    ``visitor_id``; null for sources that log both.
    """
    accepted = accepted.withColumns({"click_date": F.to_date("clicked_at"), "click_hour": F.hour("clicked_at")})
    if clients is not None:
        accepted = _with_client(accepted, clients)
    labels = F.broadcast(crawlers.withColumn("is_bot", F.lit(True)))
    return (
        accepted.join(labels, "user_agent", "left")
        .withColumns(
            {
                "source": F.lit(source),
                "is_bot": F.coalesce("is_bot", F.lit(False)),
                "country_code": F.coalesce("country_code", F.lit(UNKNOWN_COUNTRY)),
            }
        )
        .select(*CLICKS.column_names)
    )


def _with_client(accepted: DataFrame, clients: DataFrame) -> DataFrame:
    found = clients.select(
        *(F.col(name).alias(f"of_{name}") for name in ("client_address", "user_agent", "click_date")),
        F.col("country_code").alias("looked_up_country"),
        F.col("visitor_id").alias("derived_visitor"),
    )
    same_client = (
        F.col("client_address").eqNullSafe(F.col("of_client_address"))
        & F.col("user_agent").eqNullSafe(F.col("of_user_agent"))
        & F.col("click_date").eqNullSafe(F.col("of_click_date"))
    )
    return accepted.join(found, same_client, "left").withColumns(
        {
            "country_code": F.coalesce("country_code", "looked_up_country"),
            "visitor_id": F.coalesce("visitor_id", "derived_visitor"),
        }
    )


def quarantine(parsed: DataFrame, source: str) -> DataFrame:
    """One row per rejected line, as ``quarantined_clicks`` declares it."""
    return (
        parsed.where("reason IS NOT NULL")
        .withColumns({"source": F.lit(source), "raw": F.make_valid_utf8("raw")})
        .select(*QUARANTINED_CLICKS.column_names)
    )

"""Where every line went: what ``ingest_accounting`` is made of."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.ids.duplicates import log_hour_number

_LOG_HOUR = ["log_date", "log_hour"]
#: What is looked at.
OUTCOME = [*_LOG_HOUR, "reason", "first_hour", "clicked_at", "is_out_of_order"]


def count_outcomes(lines: DataFrame) -> DataFrame:
    """One row per log hour, outcome and click hour, with ``lines``, ``first_clicked_at`` and ``last_clicked_at``.

    ``out_of_order`` of the lines are older than a well-formed line before them in the same file. The outcome is
    accepted (``reason`` and ``first_hour`` null), duplicate (``first_hour`` set: the log hour of the accepted arrival,
    since 1970), or quarantined or left out (``reason`` set); ``click_hour`` is hours since 1970, null for those.
    """
    is_formed = F.col("reason").isNull()
    seconds = F.unix_seconds("clicked_at")
    return (
        lines.withColumn("click_hour", F.when(is_formed, F.floor(seconds / 3600).cast("int")))
        .groupBy(*_LOG_HOUR, "reason", "first_hour", "click_hour")
        .agg(
            F.count(F.lit(1)).alias("lines"),
            F.min("clicked_at").alias("first_clicked_at"),
            F.max("clicked_at").alias("last_clicked_at"),
            F.count_if("is_out_of_order").alias("out_of_order"),
        )
        .withColumn("log_hour_number", log_hour_number())
        .drop(*_LOG_HOUR)
    )

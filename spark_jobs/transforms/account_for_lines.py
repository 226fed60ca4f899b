"""Where every line went: what ``ingest_accounting`` is made of."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.transforms.drop_duplicates import log_hour_number

LOG_HOUR = ["log_date", "log_hour"]


def count_outcomes(arrivals: DataFrame, duplicates: DataFrame) -> DataFrame:
    """One row per log hour, outcome and click hour, with ``lines``, ``first_clicked_at`` and ``last_clicked_at``.

    ``out_of_order`` of the lines are older than a well-formed line before them in the same file. ``arrivals`` are those
    of ``spark_jobs.ingest.arrivals``; ``duplicates`` has ``row_id`` and ``first_hour``. The outcome
    is accepted (``reason`` and ``first_hour`` null), duplicate (``first_hour`` set) or quarantined (``reason`` set);
    ``click_hour`` is hours since 1970, null for quarantined lines. ``ids_hash`` is the exclusive or of the accepted
    event ids' xxhash64: it changes when the set of ids does.
    """
    is_formed = F.col("reason").isNull()
    seconds = F.unix_seconds("clicked_at")
    return (
        arrivals.join(F.broadcast(duplicates), "row_id", "left")
        .withColumn("click_hour", F.when(is_formed, F.floor(seconds / 3600).cast("int")))
        .groupBy(*LOG_HOUR, "reason", "first_hour", "click_hour")
        .agg(
            F.count(F.lit(1)).alias("lines"),
            F.min("clicked_at").alias("first_clicked_at"),
            F.max("clicked_at").alias("last_clicked_at"),
            F.bit_xor(F.xxhash64("event_id")).alias("ids_hash"),
            F.count_if("is_out_of_order").alias("out_of_order"),
        )
        .withColumn("log_hour_number", log_hour_number())
        .drop(*LOG_HOUR)
    )

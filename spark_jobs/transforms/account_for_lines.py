"""Where every line went: what ``ingest_accounting`` is made of."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.transforms.drop_duplicates import log_hour_number

LOG_HOUR = ["log_date", "log_hour"]


def count_outcomes(parsed: DataFrame, duplicates: DataFrame) -> DataFrame:
    """One row per log hour, outcome and click hour, with ``lines``, ``first_clicked_at`` and ``last_clicked_at``.

    ``parsed`` is ``parse_lines``' result with ``row_id``; ``duplicates`` has ``row_id`` and ``first_hour``. The outcome
    is accepted (``reason`` and ``first_hour`` null), duplicate (``first_hour`` set) or quarantined (``reason`` set);
    ``click_hour`` is hours since 1970, null for quarantined lines. ``ids_hash`` is the exclusive or of the accepted
    event ids' xxhash64: it changes when the set of ids does.
    """
    is_formed = F.col("reason").isNull()
    seconds = F.unix_seconds("clicked_at")
    return (
        parsed.join(F.broadcast(duplicates), "row_id", "left")
        .withColumn("click_hour", F.when(is_formed, F.floor(seconds / 3600).cast("int")))
        .groupBy(*LOG_HOUR, "reason", "first_hour", "click_hour")
        .agg(
            F.count(F.lit(1)).alias("lines"),
            F.min("clicked_at").alias("first_clicked_at"),
            F.max("clicked_at").alias("last_clicked_at"),
            F.bit_xor(F.xxhash64("event_id")).alias("ids_hash"),
        )
        .withColumn("log_hour_number", log_hour_number())
        .drop(*LOG_HOUR)
    )


def count_out_of_order(parsed: DataFrame, duplicates: DataFrame) -> DataFrame:
    """Per log hour, ``out_of_order``: accepted lines older than a well-formed line before them in the same file."""
    # The id's upper bits number the file, its lower ones the line: sorting by one number is cheaper than by names.
    before = Window.partitionBy(F.shiftright("row_id", 33)).orderBy("row_id").rowsBetween(Window.unboundedPreceding, -1)
    return (
        parsed.where("reason IS NULL")
        .select("row_id", "clicked_at", log_hour_number().alias("log_hour_number"))
        .withColumn("latest_before", F.max("clicked_at").over(before))
        .where(F.col("clicked_at") < F.col("latest_before"))
        .join(F.broadcast(duplicates), "row_id", "left_anti")
        .groupBy("log_hour_number")
        .agg(F.count(F.lit(1)).alias("out_of_order"))
    )

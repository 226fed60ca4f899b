"""Where every line of a micro-batch went: what ``stream_batches`` is made of."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

PLACE = ["file", "log_date", "log_hour"]


def count_batch(rows: DataFrame) -> DataFrame:
    """One row per file, log hour and outcome, with ``lines`` and what was seen of them.

    ``rows`` are arrivals less duplicates, and what was read. The outcome is read (``is_read``; of all lines, with their
    ``bytes``, first and last line and ``damage``), quarantined (``reason`` set) or accepted (``click_hour``, hours
    since 1970, set). ``out_of_order`` of the lines are older than a well-formed line before them in the file and the
    micro-batch.
    """
    is_read = F.col("read").isNotNull()
    click_hour = F.floor(F.unix_seconds("clicked_at") / 3600).cast("int")
    return (
        rows.withColumns({"is_read": is_read, "click_hour": F.when(F.col("reason").isNull(), click_hour)})
        .groupBy(*PLACE, "is_read", "reason", "click_hour")
        .agg(
            F.sum(F.when(is_read, F.col("read.lines")).otherwise(F.lit(1))).alias("lines"),
            F.sum("read.bytes").alias("bytes"),
            F.min("read.first_line").alias("first_offset"),
            F.max("read.last_line").alias("last_offset"),
            F.max("read.damage").alias("damage"),
            F.min("clicked_at").alias("first_clicked_at"),
            F.max("clicked_at").alias("last_clicked_at"),
            F.count_if("is_out_of_order").alias("out_of_order"),
        )
    )

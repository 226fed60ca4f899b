"""Where every line of a micro-batch went: what ``stream_batches`` is made of."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

PLACE = ["file", "log_date", "log_hour"]


def count_batch(rows: DataFrame) -> DataFrame:
    """One row per file, log hour and outcome, with ``lines`` and what was seen of them.

    ``rows`` is ``with_line_counts``' result. The outcome is read (``bytes`` set), quarantined (``reason`` set) or
    accepted (neither; ``click_hour``, hours since 1970, set). ``ids_hash`` is the exclusive or of the ids' xxhash64.
    """
    click_hour = F.floor(F.unix_seconds("clicked_at") / 3600).cast("int")
    return (
        rows.withColumn("click_hour", F.when(F.col("reason").isNull(), click_hour))
        .groupBy(*PLACE, "reason", "click_hour")
        .agg(
            F.count(F.lit(1)).alias("lines"),
            F.sum("bytes").alias("bytes"),
            F.min("line").alias("first_offset"),
            F.max("line").alias("last_offset"),
            F.min("clicked_at").alias("first_clicked_at"),
            F.max("clicked_at").alias("last_clicked_at"),
            F.bit_xor(F.xxhash64("event_id")).alias("ids_hash"),
        )
    )


def count_out_of_order(accepted: DataFrame) -> DataFrame:
    """One row per file and log hour, with ``out_of_order``: lines older than an accepted one before them in the file.

    ``accepted`` are a micro-batch's accepted lines: nothing is said of lines of different batches.
    """
    before = Window.partitionBy("file").orderBy("line").rowsBetween(Window.unboundedPreceding, -1)
    return (
        accepted.select(*PLACE, "line", "clicked_at")
        .withColumn("latest_before", F.max("clicked_at").over(before))
        .groupBy(*PLACE)
        .agg(F.count_if(F.col("clicked_at") < F.col("latest_before")).alias("out_of_order"))
    )

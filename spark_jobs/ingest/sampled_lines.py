"""A few of a JSON source's lines, and of what shapes they are: enough to find new, gone and changed fields."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

LOG_HOUR = ("log_date", "log_hour")


def line_shapes(arrivals: DataFrame, place: Sequence[str]) -> DataFrame:
    """One row per place and shape of its sampled lines: ``example``, the smallest of them, and ``lines``.

    ``arrivals`` have ``sampled``, as those of ``spark_jobs.ingest.arrivals``; ``place`` are columns of them, such as
    ``LOG_HOUR``. Lines have one shape when they have the same fields of the same types; decimals of different widths
    differ. What has no shape, such as an object with one name twice, is left out.
    """
    return (
        arrivals.where("sampled IS NOT NULL")
        .withColumn("shape", F.schema_of_variant(F.try_parse_json("sampled")))
        .where("shape IS NOT NULL")
        .groupBy(*place, "shape")
        .agg(F.min("sampled").alias("example"), F.count(F.lit(1)).alias("lines"))
        .drop("shape")
    )

"""A few of a JSON source's lines, and of what shapes they are: enough to tell new, gone and changed fields."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.json_fields import FIRST_SAMPLED_LINES, SAMPLED_EVERY
from spark_jobs.transforms.drop_duplicates import log_hour_number


def is_sampled() -> Column:
    """Whether a line is one of those looked at: by its number in its file, so that a second run takes the same ones."""
    line = F.col("line")
    return (line <= FIRST_SAMPLED_LINES) | (line % SAMPLED_EVERY == 0)


def line_shapes(parsed: DataFrame) -> DataFrame:
    """One row per log hour and shape of its sampled lines: ``example``, the smallest of them, and ``lines``.

    ``parsed`` is ``parse_lines``' result. Lines have one shape when they have the same fields of the same types;
    decimals of different widths differ. ``log_hour_number`` is hours since 1970. What has no shape, such as an object
    with one name twice, is left out.
    """
    return (
        parsed.where("sampled IS NOT NULL")
        .withColumn("shape", F.schema_of_variant(F.try_parse_json("sampled")))
        .where("shape IS NOT NULL")
        .groupBy("log_date", "log_hour", "shape")
        .agg(F.min("sampled").alias("example"), F.count(F.lit(1)).alias("lines"))
        .select(log_hour_number().alias("log_hour_number"), "example", "lines")
    )

"""A few of a JSON source's lines, and of what shapes they are: enough to tell new, gone and changed fields."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.json_fields import FIRST_SAMPLED_LINES, SAMPLED_EVERY

LOG_HOUR = ("log_date", "log_hour")


def is_sampled() -> Column:
    """Whether a line is one of those looked at: by its number in its file, so that a second run takes the same ones."""
    line = F.col("line")
    return (line <= FIRST_SAMPLED_LINES) | (line % SAMPLED_EVERY == 0)


def line_shapes(parsed: DataFrame, place: Sequence[str]) -> DataFrame:
    """One row per place and shape of its sampled lines: ``example``, the smallest of them, and ``lines``.

    ``parsed`` is ``parse_lines``' result; ``place`` are columns of it, such as ``LOG_HOUR``. Lines have one shape when
    they have the same fields of the same types; decimals of different widths differ. What has no shape, such as an
    object with one name twice, is left out.
    """
    return (
        parsed.where("sampled IS NOT NULL")
        .withColumn("shape", F.schema_of_variant(F.try_parse_json("sampled")))
        .where("shape IS NOT NULL")
        .groupBy(*place, "shape")
        .agg(F.min("sampled").alias("example"), F.count(F.lit(1)).alias("lines"))
        .drop("shape")
    )

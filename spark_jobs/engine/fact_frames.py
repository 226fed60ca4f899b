"""Facts about large tables: frames of them as one, so that one Spark action measures all."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.engine.steps import step


def collected(spark: SparkSession, name: str, facts: Iterable[tuple[str, DataFrame]]) -> dict[str, pa.Table]:
    """By subject the rows of its frames, which have the same columns, by one Spark action of this name.

    There is one frame at least; subjects without any are left out.
    """
    with step(spark, name):
        # A column for each subject, null in the rows of the others. Of lists: Arrow refuses a struct that is null, and
        # has fields that cannot be.
        subjects = [frame.select(F.array(F.struct("*")).alias(subject)) for subject, frame in facts]
        rows = reduce(lambda some, more: some.unionByName(more, allowMissingColumns=True), subjects).toArrow()
    return {
        subject: pa.Table.from_struct_array(rows[subject].combine_chunks().flatten()) for subject in rows.column_names
    }

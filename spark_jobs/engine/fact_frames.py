"""Facts about large tables: frames of them as one, so that one Spark action measures all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial, reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.engine.steps import in_parallel, step

#: Facts of a subject; frames of the same subject have the same columns.
FactFrame = tuple[str, DataFrame]


def collected(spark: SparkSession, queries: Mapping[str, Iterable[FactFrame]]) -> dict[str, pa.Table]:
    """The rows by subject, of all queries: for each a step of its name and one action, all at the same time.

    A query has one frame at least, and subjects that no other one has.
    """
    parts = in_parallel(spark, *(partial(_rows, spark, name, facts) for name, facts in queries.items()))
    return {subject: rows for part in parts for subject, rows in part.items()}


def _rows(spark: SparkSession, name: str, facts: Iterable[FactFrame]) -> dict[str, pa.Table]:
    with step(spark, name):
        # A column for each subject, null in the rows of the others. Of lists: Arrow refuses a struct that is null, and
        # has fields that cannot be.
        subjects = [frame.select(F.array(F.struct("*")).alias(subject)) for subject, frame in facts]
        rows = reduce(lambda some, more: some.unionByName(more, allowMissingColumns=True), subjects).toArrow()
    return {
        subject: pa.Table.from_struct_array(rows[subject].combine_chunks().flatten()) for subject in rows.column_names
    }

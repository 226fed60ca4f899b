"""Some of the rows that broke a rule, as text, so that a person sees what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

#: At most so many rows for each rule and partition, and so much of each.
MOST_EXAMPLES = 20
MAX_CHARACTERS = 500


def rows_that_break(
    rows: DataFrame, rules: Mapping[str, Column], partition: Column, columns: Sequence[str]
) -> DataFrame:
    """One row per row and rule that it breaks: ``rule``, ``partition`` and ``text``, a JSON object of the columns."""
    broken = F.array_compact(F.array(*(F.when(rule, F.lit(name)) for name, rule in rules.items())))
    return rows.select(F.explode(broken).alias("rule"), partition.alias("partition"), _text(columns))


def rows_with_keys_twice(
    rows: DataFrame, rule: str, key: Sequence[str], partition: Column, columns: Sequence[str]
) -> DataFrame:
    """The same of the rows whose key, where it is not null, another of these rows has too."""
    times = F.count(F.lit(1)).over(Window.partitionBy(*key))
    known = rows.where(" AND ".join(f"{name} IS NOT NULL" for name in key))
    twice = known.withColumn("times", times).where("times > 1")
    return twice.select(F.lit(rule).alias("rule"), partition.alias("partition"), _text(columns))


def some_of_each(broken: DataFrame, wanted: Mapping[str, Sequence[str]]) -> DataFrame:
    """One row per rule and partition, of those that ``wanted`` names by rule: ``examples``, at most 20 texts.

    Which ones is up to a hash of the text, so it is the same each time and not only the first lines of a file.
    """
    is_wanted = F.lit(False)
    for rule, partitions in wanted.items():
        is_wanted |= (F.col("rule") == rule) & F.col("partition").isin(list(partitions))
    return (
        broken.where(is_wanted)
        .groupBy("rule", "partition")
        .agg(F.min_by("text", F.xxhash64("text"), MOST_EXAMPLES).alias("examples"))
    )


def _text(columns: Sequence[str]) -> Column:
    text = F.to_json(F.struct(*columns), {"ignoreNullFields": "false"})
    return F.substring(text, 1, MAX_CHARACTERS).alias("text")

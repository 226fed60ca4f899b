"""Some of the rows that a check is about, as text, so that a person sees what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from expectations.checks import RowRule

#: At most so many rows for each rule and partition, and so much of each.
MOST_EXAMPLES = 20
MAX_CHARACTERS = 500


def rows_shown(rows: DataFrame, rules: Iterable[RowRule], partition: Column, columns: Sequence[str]) -> DataFrame:
    """One row per row and rule that shows it: ``rule``, ``partition`` and ``text``, a JSON object of the columns."""
    shown = ((rule.name, F.expr(rule.shown)) for rule in rules if rule.shown is not None)
    broken = F.array_compact(F.array(*(F.when(condition, F.lit(name)) for name, condition in shown)))
    return rows.select(F.explode(broken).alias("rule"), partition.alias("partition"), _text(columns))


def rows_with_same_key(rows: DataFrame, rule: RowRule, partition: Column, columns: Sequence[str]) -> DataFrame:
    """The same of the rows whose key, where none of it is null, another of these rows has too."""
    times = F.count(F.lit(1)).over(Window.partitionBy(*rule.same))
    known = rows.where(" AND ".join(f"{name} IS NOT NULL" for name in rule.same))
    twice = known.withColumn("times", times).where("times > 1")
    return twice.select(F.lit(rule.name).alias("rule"), partition.alias("partition"), _text(columns))


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

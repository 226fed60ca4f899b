"""Whether tables are co-partitioned, checked on what is stored, and what differs.

Co-partitioned are tables with the same number of buckets N, the same partitioner and, where they have the same key,
the same key type, in which every stored ``bucket`` is what the key says, and no key of a click hour has two.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.buckets import NOT_STATED, PARTITIONER, Layout
from include.counting import count_table
from include.errors import QualityError
from include.log_hours import Hour
from include.settings import Settings
from include.tables import Table
from spark_jobs.aggregate.groupings import is_misplaced
from spark_jobs.engine.column_functions import named_click_hour
from spark_jobs.engine.fact_frames import together
from spark_jobs.engine.steps import step
from spark_jobs.lake.lake import Lake

_CLICK_HOUR = ("click_date", "click_hour")
REPARTITION = "python -m spark_jobs.repartition_tables --buckets {buckets}"


@dataclass(frozen=True)
class Difference:
    """One thing in which a stored table is not as co-partitioning needs it; ``fix`` says what to do."""

    table: str
    what: str
    found: str
    expected: str
    fix: str

    def __str__(self) -> str:
        return f"{self.table}: {self.what}: found {self.found}; expected {self.expected}; to fix it: {self.fix}"


def co_partitioned_tables(settings: Settings) -> list[Table]:
    """The tables that are to be co-partitioned, in the order in which a new number of buckets is given to them."""
    return [count_table(key) for key in settings.pipeline.counts]


def differences(lake: Lake, tables: Sequence[Table]) -> list[Difference]:
    """In what the tables are not co-partitioned, rows included; none for tables that have not been made.

    The first table that says a number of buckets leads: it is the first to get a new one.
    """
    layouts = _layouts(lake, tables)
    return layout_differences(layouts, _expected_buckets(lake, layouts)) + row_differences(lake, layouts)


def require_co_partitioned(lake: Lake, tables: Sequence[Table]) -> None:
    """Refuse to work on tables that say of themselves that they are not co-partitioned; rows are not looked at.

    A table from before there was a partitioner property goes: its rows say whether it is right.

    Raises:
        QualityError: naming what differs and the command that fixes it.
    """
    layouts = _layouts(lake, tables)
    wrong = [
        difference
        for difference in layout_differences(layouts, _expected_buckets(lake, layouts))
        if (difference.what, difference.found) != ("partitioner", NOT_STATED)
    ]
    if wrong:
        raise QualityError(f"the tables are not co-partitioned: {'; '.join(map(str, wrong))}")


def layout_differences(layouts: Mapping[Table, Layout], buckets: int) -> list[Difference]:
    """In what the tables' properties and key types differ from each other, and from ``buckets``."""
    repartition = REPARTITION.format(buckets=buckets)
    key_types: dict[str | None, str | None] = {}
    found = []
    for table, layout in layouts.items():
        key_type = key_types.setdefault(table.bucket_key, table.key_type)
        if layout.buckets != buckets:
            found.append(Difference(table.name, "number of buckets", layout.stated_buckets, str(buckets), repartition))
        if layout.partitioner != PARTITIONER:
            found.append(Difference(table.name, "partitioner", layout.partitioner, PARTITIONER, repartition))
        if layout.key_type != key_type:
            again = "move the table's folder away, and run aggregate_clicks for all log hours"
            what = f"type of {table.bucket_key}"
            found.append(Difference(table.name, what, layout.key_type, str(key_type), again))
    return found


def row_differences(lake: Lake, layouts: Mapping[Table, Layout]) -> list[Difference]:
    """In what the stored rows differ from what their own table says; one pass over all tables.

    Rows of a table that says no number of buckets are not looked at.
    """
    measured = {table.name: (table, layout.buckets) for table, layout in layouts.items() if layout.buckets}
    if not measured:
        return []
    frames = {name: placement_facts(lake.read(table), table, buckets) for name, (table, buckets) in measured.items()}
    with step(lake.spark, "measure buckets"):
        facts = {row["subject"]: json.loads(row["facts"]) for row in together(**frames).collect()}
    found = []
    for name, (table, buckets) in measured.items():
        fact = facts[name]
        if fact["misplaced_rows"]:
            found.append(
                Difference(
                    name,
                    "bucket",
                    f"{fact['misplaced_rows']:,} of {fact['rows']:,} rows with another{_hours(fact)}",
                    f"pmod(hash({table.bucket_key}), {buckets})",
                    REPARTITION.format(buckets=buckets),
                )
            )
        if fact["keys_with_two_buckets"]:
            end = Hour.parse(fact["last_hour"]).plus(1)
            found.append(
                Difference(
                    name,
                    "buckets of a key",
                    f"{fact['keys_with_two_buckets']:,} keys with two in a click hour{_hours(fact)}",
                    f"one per {table.bucket_key} and click hour",
                    f"python -m spark_jobs.aggregate_clicks --from {fact['first_hour']} --to {end}, and later log "
                    "hours that brought late clicks",
                )
            )
    return found


def _hours(fact: Mapping[str, str]) -> str:
    return f", in click hours {fact['first_hour']} to {fact['last_hour']}"


def _layouts(lake: Lake, tables: Sequence[Table]) -> dict[Table, Layout]:
    return {table: lake.layout(table) for table in tables if lake.exists(table)}


def _expected_buckets(lake: Lake, layouts: Mapping[Table, Layout]) -> int:
    stated = (layout.buckets for layout in layouts.values() if layout.buckets)
    return next(stated, lake.settings.pipeline.buckets)


def placement_facts(counts: DataFrame, table: Table, buckets: int) -> DataFrame:
    """One row for a whole aggregate table: in how far its rows' buckets are those of their keys.

    A key with two buckets is counted once for each click hour. ``first_hour`` and ``last_hour`` are the click hours,
    such as 2026-03-01T05, between which something is wrong; null when all is well.
    """
    assert table.bucket_key is not None
    # -1: a row without a bucket differs from one with a bucket.
    bucket = F.coalesce("bucket", F.lit(-1))
    by_key = counts.groupBy(*_CLICK_HOUR, table.bucket_key).agg(
        F.count(F.lit(1)).alias("rows"),
        F.count_if(is_misplaced(table.bucket_key, buckets)).alias("misplaced_rows"),
        (F.min(bucket) != F.max(bucket)).alias("has_two_buckets"),
    )
    # Two different buckets cannot both be the key's.
    bad_hour = F.when(F.col("misplaced_rows") > 0, named_click_hour())
    return by_key.agg(
        F.coalesce(F.sum("rows"), F.lit(0)).alias("rows"),
        F.coalesce(F.sum("misplaced_rows"), F.lit(0)).alias("misplaced_rows"),
        F.count_if("has_two_buckets").alias("keys_with_two_buckets"),
        F.min(bad_hour).alias("first_hour"),
        F.max(bad_hour).alias("last_hour"),
    )

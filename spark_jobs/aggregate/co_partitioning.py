"""Whether tables are co-partitioned, checked on what is stored, and what differs.

Co-partitioned are tables whose rows have the same number of buckets N and, where they have the same key, the same key
type, in which every stored ``bucket`` is what the key says, and no key of a click hour has two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.buckets import Layout, is_misplaced
from include.counting import count_table
from include.errors import QualityError
from include.hours import Hour
from include.settings import Settings
from include.tables import Table
from spark_jobs.engine.column_functions import named_click_hour
from spark_jobs.engine.fact_frames import collected
from spark_jobs.lake.lake import Lake

_CLICK_HOUR = ("click_date", "click_hour")
REPARTITION = "clickmill repartition --buckets {buckets}"


@dataclass(frozen=True)
class Difference:
    """One thing in which a stored table is not as co-partitioning needs it; ``fix`` says what to do."""

    table: str
    subject: str
    observed: str
    expected: str
    fix: str

    def __str__(self) -> str:
        return f"{self.table}: {self.subject}: found {self.observed}; expected {self.expected}; to fix it: {self.fix}"


def co_partitioned_tables(settings: Settings) -> list[Table]:
    """The tables that are to be co-partitioned, in the order in which a new number of buckets is given to them."""
    return [count_table(key) for key in settings.pipeline.counts]


def differences(lake: Lake, tables: Sequence[Table]) -> list[Difference]:
    """In what the tables are not co-partitioned, rows included; none for tables that have not been made.

    The first table that has one number of buckets leads: it is the first to get a new one.
    """
    layouts = _layouts(lake, tables)
    buckets = _expected_buckets(lake, layouts)
    return layout_differences(layouts, buckets) + row_differences(lake, list(layouts), buckets)


def require_co_partitioned(lake: Lake, tables: Sequence[Table]) -> None:
    """Refuse to work on tables that are not co-partitioned by the statistics of their files; no row is read.

    Raises:
        QualityError: naming what differs and the command that fixes it.
    """
    layouts = _layouts(lake, tables)
    if wrong := layout_differences(layouts, _expected_buckets(lake, layouts)):
        raise QualityError(f"the tables are not co-partitioned: {'; '.join(map(str, wrong))}")


def layout_differences(layouts: Mapping[Table, Layout], buckets: int) -> list[Difference]:
    """In what the tables' numbers of buckets and key types differ from each other, and from ``buckets``."""
    repartition = REPARTITION.format(buckets=buckets)
    key_types: dict[str | None, str | None] = {}
    deviations = []
    for table, layout in layouts.items():
        key_type = key_types.setdefault(table.bucket_key, table.key_type)
        if layout.buckets != buckets:
            deviations.append(Difference(table.name, "number of buckets", str(layout), str(buckets), repartition))
        if layout.key_type != key_type:
            again = "move the table's folder away, and run clickmill aggregate for all log hours"
            subject = f"type of {table.bucket_key}"
            deviations.append(Difference(table.name, subject, layout.key_type, str(key_type), again))
    return deviations


def row_differences(lake: Lake, tables: Sequence[Table], buckets: int) -> list[Difference]:
    """In what the stored rows differ from what they say; one pass over all tables. ``buckets`` is what to give them."""
    if not tables:
        return []
    frames = [(table.name, placement_facts(lake.read(table), table)) for table in tables]
    facts = collected(lake.spark, {"measure buckets": frames})
    deviations = []
    for table in tables:
        (fact,) = facts[table.name].to_pylist()
        if fact["misplaced_rows"]:
            deviations.append(
                Difference(
                    table.name,
                    "bucket",
                    f"{fact['misplaced_rows']:,} of {fact['rows']:,} rows with another{_hours(fact)}",
                    f"pmod(hash({table.bucket_key}), buckets)",
                    REPARTITION.format(buckets=buckets),
                )
            )
        if fact["keys_with_two_buckets"]:
            end = Hour.parse(fact["last_hour"]).plus(1)
            deviations.append(
                Difference(
                    table.name,
                    "buckets of a key",
                    f"{fact['keys_with_two_buckets']:,} keys with two in a click hour{_hours(fact)}",
                    f"one per {table.bucket_key} and click hour",
                    f"clickmill aggregate --from {fact['first_hour']} --to {end}, and later log "
                    "hours that brought late clicks",
                )
            )
    return deviations


def _hours(fact: Mapping[str, str]) -> str:
    return f", in click hours {fact['first_hour']} to {fact['last_hour']}"


def _layouts(lake: Lake, tables: Sequence[Table]) -> dict[Table, Layout]:
    return {table: lake.layout(table) for table in tables if lake.exists(table)}


def _expected_buckets(lake: Lake, layouts: Mapping[Table, Layout]) -> int:
    known = (layout.buckets for layout in layouts.values() if layout.buckets)
    return next(known, lake.settings.pipeline.buckets)


def placement_facts(counts: DataFrame, table: Table) -> DataFrame:
    """One row for a whole aggregate table: in how far its rows' buckets are those of their keys.

    A key with two buckets is counted once for each click hour. ``first_hour`` and ``last_hour`` are the click hours,
    such as 2026-03-01T05, between which something is wrong; null when all is well.
    """
    assert table.bucket_key is not None
    # -1: a row without a bucket differs from one with a bucket.
    bucket = F.coalesce("bucket", F.lit(-1))
    by_key = counts.groupBy(*_CLICK_HOUR, table.bucket_key).agg(
        F.count(F.lit(1)).alias("rows"),
        F.count_if(F.expr(is_misplaced(table.bucket_key))).alias("misplaced_rows"),
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

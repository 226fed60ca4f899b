"""Whether the aggregate tables are co-partitioned, on what is stored; what differs, and how to fix it.

They are if their number of buckets and key types agree, every stored bucket is what its key says, and no
key of a click hour has two.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from include.errors import QualityError, UsageError
from include.settings import Settings
from include.tables import Table
from spark_jobs.aggregate.co_partitioning import co_partitioned_tables, differences
from spark_jobs.lake.lake import Lake


def check(spark: SparkSession, settings: Settings, tables: Sequence[Table]) -> list[str]:
    """Check the tables; returns a line on each.

    Raises:
        QualityError: with a line on each difference.
    """
    lake = Lake(spark, settings)
    # Beside another job some tables would be seen before it and some after.
    with lake.locked():
        deviations = differences(lake, tables)
        made = [table for table in tables if lake.exists(table)]
        table_lines = [
            f"{table.name}: {lake.buckets(table)} buckets by {table.bucket_key}" for table in made if not deviations
        ]
    if deviations:
        raise QualityError("\n  ".join(["not co-partitioned:", *map(str, deviations)]))
    missing = [f"{table.name}: not made yet" for table in tables if table not in made]
    return [f"co-partitioned: {len(made)} tables, every bucket is what its key says", *table_lines, *missing]


def chosen_tables(settings: Settings, names: Sequence[str]) -> list[Table]:
    """The co-partitioned tables of these names; all of them when no name is given.

    Raises:
        UsageError: if one of them is no such table.
    """
    tables = {table.name: table for table in co_partitioned_tables(settings)}
    for name in names:
        if name not in tables:
            raise UsageError(f"no co-partitioned table {name!r}; expected one of {', '.join(tables)}")
    return [table for name, table in tables.items() if name in names or not names]

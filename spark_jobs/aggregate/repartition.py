"""All co-partitioned tables with another number of buckets."""

from __future__ import annotations

from pyspark.sql import SparkSession

from include.buckets import Layout
from include.settings import Settings
from include.tables import Table
from spark_jobs.aggregate.co_partitioning import co_partitioned_tables, layout_differences, row_differences
from spark_jobs.aggregate.groupings import FieldsGrouping
from spark_jobs.lake.data_files import EVERY_FILE
from spark_jobs.lake.lake import Lake


def repartition(spark: SparkSession, settings: Settings, buckets: int) -> list[str]:
    """Give the tables so many buckets; returns a line on each.

    A table that has them already, in all its rows, stays as it is.
    """
    lake = Lake(spark, settings)
    lines = []
    with lake.locked():
        # In this order, so that the first table has the newest number wherever this ends: see co_partitioning.
        for table in co_partitioned_tables(settings):
            if not lake.exists(table):
                lines.append(f"{table.name}: not made yet")
                continue
            before = lake.layout(table)
            if _is_partitioned(lake, table, before, buckets):
                lines.append(f"{table.name}: has {buckets} buckets already")
                continue
            _repartition(lake, table, buckets)
            lines.append(f"{table.name}: {buckets} buckets, {before} before")
    if settings.pipeline.buckets != buckets:
        lines.append(
            f"{settings.pipeline_file} says buckets = {settings.pipeline.buckets}: "
            f"write {buckets} there, for a lake that is built again"
        )
    return lines


def _is_partitioned(lake: Lake, table: Table, layout: Layout, buckets: int) -> bool:
    return not layout_differences({table: layout}, buckets) and not row_differences(lake, [table], buckets)


def _repartition(lake: Lake, table: Table, buckets: int) -> None:
    assert table.bucket_key is not None
    grouping = FieldsGrouping(buckets, (table.bucket_key,))
    # Only what is said of a row changes: it stays in the task that has read it, and a file stays one.
    lake.replace(table, lake.read(table).withColumns(grouping.placement()), EVERY_FILE)

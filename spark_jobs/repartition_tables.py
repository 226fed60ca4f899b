"""Give all co-partitioned tables a new number of buckets, together.

Each table changes in one commit. If this is killed in between, some tables have the
new number and some the old one: the jobs that need them equal say so and refuse, and running this again finishes.
Counts stay as they are; older versions of the tables can be read as before.
"""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession

from include.buckets import MAX_BUCKETS, Layout
from include.command import OneLineParser, exit_with
from include.settings import Settings
from include.tables import Table
from spark_jobs.aggregate.co_partitioning import co_partitioned_tables, layout_differences, row_differences
from spark_jobs.aggregate.groupings import FieldsGrouping
from spark_jobs.engine.session import spark_session
from spark_jobs.lake.data_files import EVERY_FILE
from spark_jobs.lake.lake import Lake


def run(spark: SparkSession, settings: Settings, buckets: int) -> list[str]:
    """Give the tables so many buckets; returns a line on each.

    A table that has them already, in all its rows, stays as it is.
    """
    lake = Lake(spark, settings)
    said = []
    with lake.locked():
        # In this order, so that the first table has the newest number wherever this ends: see co_partitioning.
        for table in co_partitioned_tables(settings):
            if not lake.exists(table):
                said.append(f"{table.name}: not made yet")
                continue
            before = lake.layout(table)
            if _is_partitioned(lake, table, before, buckets):
                said.append(f"{table.name}: has {buckets} buckets already")
                continue
            _repartition(lake, table, buckets)
            said.append(f"{table.name}: {buckets} buckets, {before} before")
    if settings.pipeline.buckets != buckets:
        said.append(
            f"{settings.pipeline_file} says buckets = {settings.pipeline.buckets}: "
            f"write {buckets} there, for a lake that is built again"
        )
    return said


def _is_partitioned(lake: Lake, table: Table, layout: Layout, buckets: int) -> bool:
    return not layout_differences({table: layout}, buckets) and not row_differences(lake, [table], buckets)


def _repartition(lake: Lake, table: Table, buckets: int) -> None:
    assert table.bucket_key is not None
    grouping = FieldsGrouping(buckets, (table.bucket_key,))
    # Only what is said of a row changes: it stays in the task that has read it, and a file stays one.
    lake.replace(table, lake.read(table).withColumns(grouping.placement()), EVERY_FILE)


def _number_of_buckets(text: str) -> int:
    if text.isascii() and text.isdecimal() and 1 <= int(text) <= MAX_BUCKETS:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r}; expected a whole number from 1 to {MAX_BUCKETS}")


def main() -> None:
    """The job from a shell."""
    parser = OneLineParser(prog="python -m spark_jobs.repartition_tables", description=__doc__)
    parser.add_argument(
        "--buckets", required=True, type=_number_of_buckets, metavar="N", help=f"their number, 1 to {MAX_BUCKETS}"
    )
    given = parser.parse_args()
    settings = Settings.from_environment()
    with spark_session(settings) as spark:
        print(*run(spark, settings, given.buckets), sep="\n")


if __name__ == "__main__":
    exit_with(main)

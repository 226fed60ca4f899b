"""Publish click hours: the computed counts take the place of the published ones, and of the exports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from include.log_hours import Hour, by_day
from include.tables import AGGREGATES, Table
from spark_jobs.engine.steps import at_once
from spark_jobs.lake.data_files import may_have_click_hours
from spark_jobs.lake.lake import Lake, click_hours_predicate
from spark_jobs.publish.exports import export_hours, exported_columns


#: Of the counts' files, so many bytes of each table are copied by this process; what is more, by Spark.
MOST_BYTES = 32 << 20


def publish_hours(lake: Lake, hours: Sequence[Hour], done: Callable[[Table], None] = lambda table: None) -> None:
    """Replace these click hours in the published tables, and in the exports, by what is counted now.

    Hold the lake's lock. ``done`` is called, from several threads, with each table that has them.
    """

    def publish(computed: Table, published: Table) -> None:
        files = lake.data_files(computed, may_have_click_hours(computed, hours))
        if sum(file.size for file in files) > MOST_BYTES:
            replace_published(lake, published, lake.read_click_hours(computed, hours), hours)
        else:
            # A copy of few rows: Spark takes six jobs and some half a second of a processor for it, this a tenth.
            rows = _rows_of_hours(lake, computed, published.column_names, hours)
            lake.replace_rows(published, rows, click_hours_predicate(hours))
            _export(lake, published, rows.select(exported_columns(published)), hours)
        done(published)

    at_once(lake.spark, *(partial(publish, *tables) for tables in AGGREGATES.items()))


def replace_published(lake: Lake, published: Table, rows: DataFrame, hours: Sequence[Hour]) -> None:
    """Replace these click hours of a published table by these rows, in one commit, and export them."""
    # One file an hour: as they are read, an hour's buckets are in several tasks.
    lake.replace(published, rows.repartition("click_date", "click_hour"), click_hours_predicate(hours))
    _export(lake, published, _rows_of_hours(lake, published, exported_columns(published), hours), hours)


def _export(lake: Lake, published: Table, rows: pa.Table, hours: Sequence[Hour]) -> None:
    export_hours(rows, lake.settings.reports / "exports", published.name, hours)


def _rows_of_hours(lake: Lake, table: Table, columns: Sequence[str], hours: Iterable[Hour]) -> pa.Table:
    return pa.concat_tables(
        lake.read_table(table, columns, [("click_date", "=", day), ("click_hour", "in", of_day)])
        for day, of_day in by_day(hours).items()
    )

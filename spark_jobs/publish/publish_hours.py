"""Publish click hours: the computed counts take the place of the published ones, and of the exports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from include.log_hours import Hour, by_day
from include.tables import AGGREGATES, Table
from spark_jobs.engine.steps import in_parallel
from spark_jobs.lake.lake import Lake, click_hours_predicate
from spark_jobs.publish.exports import export_hours, exported_columns


def publish_hours(lake: Lake, hours: Sequence[Hour], done: Callable[[Table], None] = lambda table: None) -> None:
    """Replace these click hours in the published tables, and in the exports, by what is counted now.

    ``done`` is called, from several threads, with each table that has them.
    """

    def publish(computed: Table, published: Table) -> None:
        replace_published(lake, published, lake.read_click_hours(computed, hours), hours)
        done(published)

    in_parallel(lake.spark, *(partial(publish, *tables) for tables in AGGREGATES.items()))


def replace_published(lake: Lake, published: Table, rows: DataFrame, hours: Sequence[Hour]) -> None:
    """Replace these click hours of a published table by these rows, in one commit, and export them."""
    lake.replace(published, rows, click_hours_predicate(hours))
    lake.require_locks()
    export_hours(_published_rows(lake, published, hours), lake.settings.reports / "exports", published.name, hours)


def _published_rows(lake: Lake, published: Table, hours: Iterable[Hour]) -> pa.Table:
    return pa.concat_tables(
        lake.read_table(
            published, exported_columns(published), [("click_date", "=", day), ("click_hour", "in", of_day)]
        )
        for day, of_day in by_day(hours).items()
    )

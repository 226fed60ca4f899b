"""Publish click hours: the computed counts take the place of the published ones, and of the exports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import pyarrow as pa

from include.log_hours import Hour, by_day
from include.tables import AGGREGATES, Table
from spark_jobs.engine.steps import at_once
from spark_jobs.lake.lake import Lake, click_hours_predicate
from spark_jobs.publish.exports import export_hours


def publish_hours(lake: Lake, hours: Sequence[Hour]) -> None:
    """Replace these click hours in the published tables, and in the exports, by what is counted now."""

    def publish(computed: Table, published: Table) -> None:
        # One file an hour: as they are read, an hour's buckets are in several tasks.
        rows = lake.read_click_hours(computed, hours).repartition("click_date", "click_hour")
        lake.replace(published, rows, click_hours_predicate(hours))
        export_hours(_published_rows(lake, published, hours), lake.settings.reports / "exports", published.name, hours)

    at_once(lake.spark, *(partial(publish, *tables) for tables in AGGREGATES.items()))


def _published_rows(lake: Lake, published: Table, hours: Iterable[Hour]) -> pa.Table:
    return pa.concat_tables(
        lake.read_table(published, published.column_names, [("click_date", "=", day), ("click_hour", "in", of_day)])
        for day, of_day in by_day(hours).items()
    )

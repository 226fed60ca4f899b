"""Publish click hours: the computed counts take the place of the published ones, and of the exports.

Rows are only copied: by Arrow and delta-rs, batch by batch, without a Spark job.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain

import pyarrow as pa

from include.log_hours import Hour, by_day
from include.stored_rows import Filters, arrow_schema
from include.tables import AGGREGATES, Table
from spark_jobs.engine.steps import in_parallel
from spark_jobs.lake.lake import Lake, click_hours_predicate
from spark_jobs.publish.exports import export_hours, exported_columns

#: Click hours by the version of a table that has their rows; None: it had not been made.
HoursOfVersions = Mapping[int | None, Sequence[Hour]]


def publish_hours(lake: Lake, hours: Sequence[Hour], done: Callable[[Table], None] = lambda table: None) -> None:
    """Replace these click hours in the published tables, and in the exports, by what is counted now.

    ``done`` is called, from several threads, with each table that has them.
    """

    def publish(computed: Table, published: Table) -> None:
        replace_published(lake, published, computed, {lake.version(computed): hours})
        done(published)

    in_parallel(lake.spark, *(partial(publish, *tables) for tables in AGGREGATES.items()))


def replace_published(lake: Lake, published: Table, source: Table, versions: HoursOfVersions) -> None:
    """Replace these click hours of a published table, in one commit, by rows of ``source``; and export them."""
    hours = [hour for of_version in versions.values() for hour in of_version]
    rows = [
        lake.open_table(source, published.column_names, _of_hours(of_version), version)
        for version, of_version in versions.items()
        if version is not None
    ]
    reader = pa.RecordBatchReader.from_batches(
        arrow_schema(published, published.column_names), chain.from_iterable(rows)
    )
    lake.replace_rows(published, reader, click_hours_predicate(hours))
    lake.require_locks()
    exported = lake.open_table(published, exported_columns(published), _of_hours(hours)).read_all()
    export_hours(exported, lake.settings.reports / "exports", published.name, hours)


def _of_hours(hours: Sequence[Hour]) -> list[Filters]:
    return [[("click_date", "=", day), ("click_hour", "in", of_day)] for day, of_day in by_day(hours).items()]

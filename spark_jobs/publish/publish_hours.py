"""Publish click hours: the computed counts take the place of the published ones, and of the exports.

Rows are only copied: by Arrow and delta-rs, batch by batch, without a Spark job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

import pyarrow as pa

from include.log_hours import Hour, by_day
from include.stored_rows import Filters, arrow_schema
from include.tables import AGGREGATES, Table
from spark_jobs.engine.steps import in_parallel
from spark_jobs.lake.data_files import in_parts, may_have_click_hours
from spark_jobs.lake.lake import Lake, click_hours_predicate
from spark_jobs.publish.exports import export_hours, exported_columns

#: Click hours by the version of a table that has their rows; None: it had not been made.
HoursOfVersions = Mapping[int | None, Sequence[Hour]]
#: Of the files of counts, so many bytes in one commit: their rows, some four times as large, pass through this process.
MOST_BYTES = 64 << 20


def publish_hours(lake: Lake, hours: Sequence[Hour]) -> None:
    """Replace these click hours in the published tables, and in the exports, by what is counted now.

    A range with many rows takes several commits for each table.
    """

    def publish(computed: Table, published: Table) -> None:
        for part in _in_parts(lake, computed, hours):
            replace_published(lake, published, computed, {lake.version(computed): part})

    _for_each_count(lake, publish)


def publish_at_once(lake: Lake, hours: Sequence[Hour], done: Callable[[Table], None]) -> None:
    """The same in one commit for each table, so that no reader sees a mix; holds the rows of all hours in memory.

    ``done`` is called, from several threads, with each table that has them.
    """

    def publish(computed: Table, published: Table) -> None:
        replace_published(lake, published, computed, {lake.version(computed): hours})
        done(published)

    _for_each_count(lake, publish)


def _for_each_count(lake: Lake, publish: Callable[[Table, Table], None]) -> None:
    in_parallel(lake.spark, *(partial(publish, *tables) for tables in AGGREGATES.items()))


def replace_published(lake: Lake, published: Table, source: Table, versions: HoursOfVersions) -> None:
    """Replace these click hours of a published table, in one commit, by rows of ``source``; and export them."""
    columns = published.column_names
    # A list: delta-rs cannot open a table while it writes what it reads.
    rows = [
        lake.open_table(source, columns, _of_hours(hours), version)
        for version, hours in versions.items()
        if version is not None
    ]
    hours = [hour for of_version in versions.values() for hour in of_version]
    reader = pa.RecordBatchReader.from_batches(arrow_schema(published, columns), chain.from_iterable(rows))
    lake.replace_rows(published, reader, click_hours_predicate(hours))
    lake.require_locks()
    for part in _in_parts(lake, published, hours):
        exported = lake.open_table(published, exported_columns(published), _of_hours(part)).read_all()
        export_hours(exported, lake.settings.reports / "exports", published.name, part)


def _of_hours(hours: Sequence[Hour]) -> list[Filters]:
    return [[("click_date", "=", day), ("click_hour", "in", of_day)] for day, of_day in by_day(hours).items()]


def _in_parts(lake: Lake, table: Table, hours: Sequence[Hour]) -> Iterator[list[Hour]]:
    sizes: Counter[Hour] = Counter()
    for file in lake.data_files(table, may_have_click_hours(table, hours)):
        sizes[file.click_hour] += file.size
    return in_parts(sorted(hours), sizes.__getitem__, MOST_BYTES)

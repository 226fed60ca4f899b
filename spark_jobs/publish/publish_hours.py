"""Publish click hours: the computed counts take the place of the published ones, and of the exports.

Rows are only copied: by Arrow and delta-rs, batch by batch, without a Spark job. With ``smallest_visitors`` Spark puts
keys together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from functools import partial, reduce
from itertools import chain

import pyarrow as pa
from deltalake.exceptions import DeltaError
from pyspark.sql import DataFrame

from include.errors import ClickmillError
from include.hours import Hour, by_day, click_hours_predicate
from include.stored_rows import Filters, arrow_schema
from include.tables import AGGREGATES, VISIBILITY, Table
from spark_jobs.aggregate.small_keys import publishable, visibility
from spark_jobs.engine.steps import in_parallel
from spark_jobs.engine.worker_tasks import parts_by_size
from spark_jobs.lake.data_files import may_have_click_hours
from spark_jobs.lake.lake import Lake
from spark_jobs.publish.exports import export_hours, exported_columns

#: Click hours by the version of a table that has their rows; None: it had not been made.
HoursOfVersions = Mapping[int | None, Sequence[Hour]]
#: delta-rs keeps a file open for each click hour, and what it has of it in memory: of all hours about so many bytes.
MOST_BYTES_OF_OPEN_FILES = 256 << 20
#: A file has at least so many bytes, unless its click hour has fewer.
LEAST_BYTES_OF_A_FILE = 1 << 20
#: Of published files, so many bytes at a time are read to be exported.
MOST_BYTES_EXPORTED = 64 << 20


def publish_hours(lake: Lake, hours: Sequence[Hour], done: Callable[[Table], None] = lambda table: None) -> None:
    """Replace these click hours in the published tables, and in the exports, by what is counted now.

    ``done`` is called, from several threads, with each table that has them.
    """

    def publish(computed: Table, published: Table) -> None:
        replace_published(lake, published, computed, {lake.version(computed): hours})
        done(published)

    in_parallel(lake.spark, *(partial(publish, *tables) for tables in AGGREGATES.items()))


def replace_published(lake: Lake, published: Table, source: Table, versions: HoursOfVersions) -> None:
    """Replace these click hours of a published table, in one commit, by rows of ``source``; and export them.

    Raises:
        ClickmillError: if a file of ``source`` is lost or damaged; then nothing has been replaced.
        LockLostError: if a lock of the lake is lost before the commit.
    """
    hours = [hour for of_version in versions.values() for hour in of_version]
    if smallest := lake.settings.pipeline.publication.smallest_visitors:
        known, rows, key = VISIBILITY[published], _read(lake, source, versions), published.key[-1]
        # First what is hidden: killed in between, the same is published after it.
        now = visibility(rows, key, smallest, lake.read_click_hours(known, hours))
        lake.replace(known, now, may_have_click_hours(known, hours))
        rows = publishable(rows, key, smallest, lake.read_click_hours(known, hours))
        lake.replace(published, rows, may_have_click_hours(published, hours))
    else:
        _copy(lake, published, source, versions, hours)
    lake.require_locks()
    _export(lake, published, hours)


def _read(lake: Lake, source: Table, versions: HoursOfVersions) -> DataFrame:
    frames = [
        lake.read_files(source, may_have_click_hours(source, () if version is None else hours), version=version)
        for version, hours in versions.items()
    ]
    return reduce(DataFrame.unionByName, frames)


def _copy(lake: Lake, published: Table, source: Table, versions: HoursOfVersions, hours: Sequence[Hour]) -> None:
    columns = published.column_names
    # A list: delta-rs cannot open a table while it writes what it reads.
    readers = [
        lake.open_table(source, columns, _of_hours(hours), version)
        for version, hours in versions.items()
        if version is not None
    ]

    def rows() -> Iterator[pa.RecordBatch]:
        yield from chain.from_iterable(readers)
        # Raised here, it stops the commit.
        lake.require_locks()

    try:
        lake.replace_rows(
            published,
            pa.RecordBatchReader.from_batches(arrow_schema(published, columns), rows()),
            click_hours_predicate(hours),
            file_bytes=max(LEAST_BYTES_OF_A_FILE, MOST_BYTES_OF_OPEN_FILES // len(hours)),
        )
    except DeltaError as error:
        lake.require_locks()
        raise ClickmillError(
            f"nothing of {published.name} has been replaced: its rows cannot be copied from {source.name}: "
            f"{str(error).splitlines()[0]}; if a file is lost or damaged, count its hours again: "
            f"clickmill aggregate --from {min(hours)} --to {max(hours).plus(1)}"
        ) from error


def _export(lake: Lake, published: Table, hours: Sequence[Hour]) -> None:
    sizes: Counter[Hour] = Counter()
    for file in lake.data_files(published, may_have_click_hours(published, hours)):
        sizes[file.click_hour] += file.size
    for part in parts_by_size(((hour, sizes[hour]) for hour in sorted(hours)), MOST_BYTES_EXPORTED):
        exported = lake.open_table(published, exported_columns(published), _of_hours(part)).read_all()
        export_hours(exported, lake.settings.reports / "exports", published.name, part)


def _of_hours(hours: Sequence[Hour]) -> list[Filters]:
    """One condition for all days with the same hours, since each is looked at for each file."""
    days: dict[tuple[int, ...], list[date]] = {}
    for day, of_day in by_day(hours).items():
        days.setdefault(tuple(of_day), []).append(day)
    return [[("click_date", "in", alike), ("click_hour", "in", list(of_day))] for of_day, alike in days.items()]

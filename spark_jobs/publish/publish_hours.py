"""Publish click hours: the computed counts take the place of the published ones, and of the exports.

Rows are only copied, from file to file. With ``smallest_visitors`` Spark puts keys together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from include.errors import ClickmillError
from include.hours import Hour
from include.tables import AGGREGATES, VISIBILITY, Table
from spark_jobs.aggregate.small_keys import publishable, visibility
from spark_jobs.engine.steps import in_parallel
from spark_jobs.engine.worker_tasks import failure_line
from spark_jobs.lake.data_files import may_have_click_hours
from spark_jobs.lake.lake import Lake
from spark_jobs.publish.exports import export_hours

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
    export_hours(lake, published, hours)


def _read(lake: Lake, source: Table, versions: HoursOfVersions) -> DataFrame:
    frames = [
        lake.read_files(source, may_have_click_hours(source, () if version is None else hours), version=version)
        for version, hours in versions.items()
    ]
    return reduce(DataFrame.unionByName, frames)


def _copy(lake: Lake, published: Table, source: Table, versions: HoursOfVersions, hours: Sequence[Hour]) -> None:
    files = [
        file
        for version, of_version in versions.items()
        if version is not None
        for file in lake.data_files(source, may_have_click_hours(source, of_version), version=version)
    ]
    try:
        copies = lake.copy_files(published, files)
    except (OSError, pa.ArrowException, PySparkException) as error:
        lake.require_locks()
        raise ClickmillError(
            f"nothing of {published.name} has been replaced: its rows cannot be copied from {source.name}: "
            f"{failure_line(error)}; if a file is lost or damaged, count its hours again: "
            f"clickmill aggregate --from {min(hours)} --to {max(hours).plus(1)}"
        ) from error
    lake.replace_files(published, copies, may_have_click_hours(published, hours))

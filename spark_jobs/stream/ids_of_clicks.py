"""The event ids that a stream would know if it had kept them: those of the clicks of its last log hours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions as F

from include.hours import Hour, log_hour_of
from include.tables import CLICKS, STREAM_BATCHES
from spark_jobs.ids.duplicates import log_hour_number
from spark_jobs.ids.id_manifest import IdManifest
from spark_jobs.ids.known_ids import NO_HOUR, IdFile, Ids, now_hour
from spark_jobs.ids.partitions import HIGH, LOW, HashRange, Numbers, id_hashes, repartition_by_hash
from spark_jobs.lake.data_files import TableVersion, has_log_hours, has_source
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.transactions import StreamTransaction
from spark_jobs.lines.columns import as_numpy

#: A task writes so many ids to a file, which is what it has in memory.
_IDS_OF_FILE = 1 << 20


def with_ids_of_clicks(
    lake: Lake, source: str, known: IdManifest, folder: Path, partitions: int, version: int | None
) -> IdManifest:
    """What is known, and the ids of the source's clicks, as the table was at this version, that should be.

    By so many tasks, into files in the ``folder``.
    """
    if not lake.exists(CLICKS):
        return known
    files = TableVersion.newest(lake.path(CLICKS), CLICKS, version).chosen(has_source(source))
    there = {file.log_hour for file in files}
    if not there:
        return known
    now = now_hour()
    # A later one is of a clock that was ahead.
    seen = [known.newest_hour, *(hour.number for hour in there)]
    newest = max((hour for hour in seen if NO_HOUR < hour <= now), default=now)
    hours = _still_known(lake, source, there, newest - known.kept_hours)
    clicks = lake.read_files(CLICKS, has_log_hours(source, hours), version=version).where("event_id IS NOT NULL")
    columns = [of_id.alias(name) for name, of_id in id_hashes(F.col("event_id")).items()]
    ids = repartition_by_hash(clicks.select(*columns, log_hour_number().alias("hour")), F.col(HIGH), partitions)

    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number = TaskContext.get().partitionId()  # type: ignore[union-attr]  # in a task
        hashes = HashRange.of_partition(number, partitions)
        for high, low, hour in _pieces(batches):
            # As if they were read now.
            kept_from = np.maximum(np.minimum(hour, newest), newest - known.lateness_hours)
            file = IdFile.write(folder, Ids.of(high, low, hour, kept_from), hashes)
            row = {"partition": number, "name": file.name, "ids": file.ids, "hour": file.newest_hour}
            yield pa.RecordBatch.from_pylist([row])

    written = ids.mapInArrow(keep, "partition bigint, name string, ids bigint, hour bigint").collect()
    new_files = [
        IdFile(row["name"], HashRange.of_partition(row["partition"], partitions), row["ids"], row["hour"])
        for row in written
    ]
    return known.model_copy(update={"newest_hour": newest, "files": (*known.files, *new_files)})


def version_without(lake: Lake, stream_id: str, last: int) -> int | None:
    """The newest version of ``clicks`` without rows of micro-batches after the ``last`` one: they are tried again.

    None if that is the table as it is.
    """
    stored = lake.stored(CLICKS)
    if stored is None:
        return None
    newest = stored.version()
    while StreamTransaction(stream_id, last + 1).is_in(stored):
        stored.load_as_version(stored.version() - 1)
    return stored.version() if stored.version() < newest else None


def _still_known(lake: Lake, source: str, there: set[Hour], oldest: int) -> set[Hour]:
    """Those from the ``oldest`` log hour on, and earlier ones of which lines were read as late as theirs."""
    columns = ["log_date", "log_hour", "written_at"]
    written = lake.read_rows(STREAM_BATCHES, columns, [("source", "=", source)])
    since = min((row["written_at"] for row in written if log_hour_of(row).number >= oldest), default=None)
    as_late = {log_hour_of(row) for row in written if since is not None and row["written_at"] >= since}
    return {hour for hour in there if hour.number >= oldest} | (as_late & there)


def _pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Numbers, ...]]:
    """The columns of these rows, so many rows at a time."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= _IDS_OF_FILE:
            yield _columns(waiting)
            waiting = []
    if sum(map(len, waiting)):
        yield _columns(waiting)


def _columns(batches: list[pa.RecordBatch]) -> tuple[Numbers, ...]:
    table = pa.Table.from_batches(batches)
    return tuple(as_numpy(table[name]) for name in (HIGH, LOW, "hour"))

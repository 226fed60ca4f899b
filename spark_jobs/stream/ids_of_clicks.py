"""The event ids that a stream would know if it had kept them: those of the clicks of its last log hours."""

from __future__ import annotations

import json
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
from spark_jobs.ids.known_ids import ID_BYTES, NO_HOUR, IdFile, Ids, now_hour
from spark_jobs.ids.partitions import HIGH, LOW, HashRange, id_hashes, repartition_by_hash
from spark_jobs.lake.data_files import TableVersion, has_log_hours, has_source
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.transactions import StreamTransaction
from spark_jobs.lines.columns import as_numpy, in_pieces

#: A task writes about so much to a file, which is what it has in memory.
_FILE_BYTES = ID_BYTES << 20


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
        for rows in in_pieces((pa.Table.from_batches([batch]) for batch in batches if batch.num_rows), _FILE_BYTES):
            high, low, hour = (as_numpy(rows[name]) for name in (HIGH, LOW, "hour"))
            # As if they were read now.
            kept_from = np.maximum(np.minimum(hour, newest), newest - known.lateness_hours)
            file = IdFile.write(folder, Ids.of(high, low, hour, kept_from), hashes)
            yield pa.RecordBatch.from_pylist([{"file": json.dumps(file)}])

    written = [json.loads(row["file"]) for row in ids.mapInArrow(keep, "file string").collect()]
    return known.changed(newest_hour=newest, files=(*known.files, *written))


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

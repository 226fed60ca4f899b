"""The event ids that a stream knows, where earlier versions of Clickmill kept them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_jobs.ingest.columns import as_numpy
from spark_jobs.stream.checkpoint import StreamCheckpoint
from spark_jobs.stream.duplicates import HIGH, LOW, id_hashes, repartition_by_hash
from spark_jobs.stream.id_manifest import IdManifest
from spark_jobs.stream.known_ids import ANY_HOUR, NO_HOUR, HashRange, IdFile, Ids

_ALL = HashRange.of_partition(0, 1)


def mark(folder: Path) -> Path:
    """A file that says which folder has the files of ids: there is one as long as no manifest names them."""
    return folder / "partitions"


def in_folders(folder: Path, none: IdManifest, last: int) -> IdManifest:
    """Those of files by partition, named after their micro-batches and newest hour; up to the ``last`` one."""
    files: list[IdFile] = []
    for partition in (folder / mark(folder).read_text(encoding="utf-8").strip()).glob("[0-9]*"):
        named = {path: [int(part) for part in path.stem.split("_")] for path in partition.glob("[0-9]*.npy")}
        ended = -1
        # One that is part of another comes after it.
        for path, (_, end, newest_hour) in sorted(named.items(), key=lambda one: (one[1][0], -one[1][1])):
            if ended < end <= last:
                ended = end
                files.append(IdFile(str(path.relative_to(folder)), _ALL, len(Ids.of_file(path).high), newest_hour))
    return _knowing(none, files)


def in_spark_state(
    spark: SparkSession, checkpoint: StreamCheckpoint, folder: Path, none: IdManifest, partitions: int
) -> IdManifest:
    """Those of ``dropDuplicatesWithinWatermark``, which kept each an hour and ``lateness_hours`` after its log hour.

    By so many tasks, into files in the ``folder``.
    """
    hashes = [of_id.alias(name) for name, of_id in id_hashes(F.col("key.state_id")).items()]
    seen = (F.col("value.expiresAtMicros") / 3_600_000_000).cast("int") - (none.lateness_hours + 1)
    ids = (
        spark.read.format("statestore")
        .load(str(checkpoint.folder))
        .where("key.state_id IS NOT NULL")
        .select(*hashes, seen.alias("hour"))
    )

    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = [[as_numpy(batch[name]) for name in (HIGH, LOW, "hour")] for batch in batches if len(batch)]
        if parts:
            high, low, hour = (np.concatenate(column) for column in zip(*parts, strict=True))
            file = IdFile.write(folder, Ids.of(high, low, np.full(len(high), ANY_HOUR), hour), _ALL)
            yield pa.RecordBatch.from_pydict({"name": [file.name], "ids": [file.ids], "hour": [file.newest_hour]})

    in_partitions = repartition_by_hash(ids, F.col(HIGH), partitions)
    kept = in_partitions.mapInArrow(keep, "name string, ids bigint, hour bigint")
    return _knowing(none, [IdFile(row["name"], _ALL, row["ids"], row["hour"]) for row in kept.collect()])


def _knowing(none: IdManifest, files: list[IdFile]) -> IdManifest:
    newest_hour = max((file.newest_hour for file in files), default=NO_HOUR)
    return none.model_copy(update={"newest_hour": newest_hour, "files": tuple(files)})

"""The folder with the event ids that a stream knows, in its checkpoint: made, and fitted to its settings, at its start.

Only who holds ``StreamCheckpoint.owned`` may do so. The file ``partitions`` says which of the folders in it counts; it
is written when that one is whole, so what a killed start has left is done again by the next.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_jobs.ingest.columns import as_numpy
from spark_jobs.stream.checkpoint import StreamCheckpoint
from spark_jobs.stream.compatibility import keep_with_checkpoint
from spark_jobs.stream.duplicates import HIGH, LOW, id_hashes, repartition_by_hash
from spark_jobs.stream.first_arrivals import IdPartitions
from spark_jobs.stream.known_ids import ANY_HOUR, IdFile, Ids


@dataclass(frozen=True)
class IdFolder:
    """The ids of one stream; its query reads and writes them as ``IdPartitions``."""

    checkpoint: StreamCheckpoint

    @property
    def _folder(self) -> Path:
        return self.checkpoint.folder / "ids"

    @property
    def _mark(self) -> Path:
        return self._folder / "partitions"

    @property
    def _partitions(self) -> int | None:
        return int(self._mark.read_text(encoding="utf-8")) if self._mark.exists() else None

    def size(self) -> tuple[int, int]:
        """How many ids are known, and the bytes of their files."""
        sizes = []
        for file in self._files():
            with suppress(FileNotFoundError):  # merged meanwhile
                sizes.append(file.path.stat().st_size)
        return sum(map(IdFile.ids_in, sizes)), sum(sizes)

    def _files(self) -> list[IdFile]:
        folder = self._folder / str(self._partitions)
        return [file for partition in folder.glob("[0-9]*") for file in IdFile.in_folder(partition)]

    def fitted(self, spark: SparkSession, partitions: int, lateness_hours: int) -> IdPartitions:
        """The ids in so many partitions: those that are known, also from Spark's state, where they were before."""
        there = self._partitions
        spark_state = self.checkpoint.folder / "state"
        folder = self._folder / str(partitions)
        if there != partitions:
            shutil.rmtree(folder, ignore_errors=True)
            if there is not None:
                self._repartition(folder, partitions)
            elif spark_state.exists() and self.checkpoint.last_ended() >= 0:
                self._take_over(spark, folder, partitions, lateness_hours)
            elif self.checkpoint.has_begun():
                print(
                    f"the stream of {self.checkpoint.source} knows no event ids from before this start: a copy of an "
                    "earlier click is a click",
                    flush=True,
                )
            keep_with_checkpoint(self._mark, f"{partitions}\n")
        for other in self._folder.glob("[0-9]*"):
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)
        # Spark would refuse a query that has no use for it.
        shutil.rmtree(spark_state, ignore_errors=True)
        return IdPartitions(folder, partitions, lateness_hours)

    def _repartition(self, folder: Path, partitions: int) -> None:
        """What the micro-batches that have ended have added, in another number of partitions."""
        last = self.checkpoint.last_ended()
        files = [file for file in self._files() if file.last <= last]
        if files:
            newest = max(file.newest_hour for file in files)
            for partition in range(partitions):
                chosen = Ids.joined(ids.where(ids.number(partitions) == partition) for ids in map(IdFile.load, files))
                IdFile.write(folder / str(partition), 0, last, newest, chosen)

    def _take_over(self, spark: SparkSession, folder: Path, partitions: int, lateness_hours: int) -> None:
        """The ids that ``dropDuplicatesWithinWatermark`` has kept, each an hour and ``lateness_hours`` after it."""
        last = self.checkpoint.last_ended()
        hashes = [of_id.alias(name) for name, of_id in id_hashes(F.col("key.state_id")).items()]
        seen = (F.col("value.expiresAtMicros") / 3_600_000_000).cast("int") - (lateness_hours + 1)
        ids = (
            spark.read.format("statestore")
            .load(str(self.checkpoint.folder))
            .where("key.state_id IS NOT NULL")
            .select(*hashes, seen.alias("hour"))
        )

        def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            parts = [[as_numpy(batch[name]) for name in (HIGH, LOW, "hour")] for batch in batches if len(batch)]
            if parts:
                high, low, hour = (np.concatenate(column) for column in zip(*parts, strict=True))
                partition = folder / str(int(high[0]) % partitions)
                ids = Ids.of(high, low, np.full(len(high), ANY_HOUR), hour)
                IdFile.write(partition, 0, last, int(hour.max()), ids)
                yield pa.RecordBatch.from_pydict({"ids": [len(high)]})

        repartition_by_hash(ids, F.col(HIGH), partitions).mapInArrow(keep, "ids bigint").collect()

"""The folder with the event ids that a stream knows, in its checkpoint: made ready at its start, kept by its query."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Row, SparkSession

from include.errors import ClickmillError
from include.sources import Source, stream_of
from spark_jobs.stream import earlier_ids
from spark_jobs.stream.checkpoint import StreamCheckpoint
from spark_jobs.stream.first_arrivals import BatchIds
from spark_jobs.stream.id_manifest import IdManifest
from spark_jobs.stream.known_ids import ID_BYTES

#: A file goes so many micro-batches after the last one that has it; what belongs to none, after so many seconds.
_KEPT_BATCHES, _KEPT_SECONDS = 10, 86_400


@dataclass(frozen=True)
class StreamIds:
    """The ids as the work on micro-batches has them; the settings are those of the query's start."""

    folder: Path
    partitions: int
    lateness_hours: int

    def before(self, batch_id: int) -> BatchIds:
        """What each try of a micro-batch begins with.

        Raises:
            ClickmillError: if it is not known.
        """
        try:
            manifest = IdManifest.read(self.folder, batch_id - 1)
        except FileNotFoundError as error:
            raise ClickmillError(
                f"{error.filename}, the event ids that were known before micro-batch {batch_id}, is not there: it was "
                "removed, or a query of the last start has gone on without event ids; start the stream again"
            ) from None
        return BatchIds(self.folder, manifest, self.partitions)

    def keep(self, batch_id: int, before: BatchIds, left: list[Row]) -> None:
        """Keep what is known after a micro-batch, when all else of it is written; and remove what was long ago."""
        before.after(left, self.lateness_hours).write(self.folder, batch_id)
        old = batch_id - _KEPT_BATCHES
        try:
            names = IdManifest.read(self.folder, old).names - IdManifest.read(self.folder, old + 1).names
        except FileNotFoundError:
            return
        for name in names:
            (self.folder / name).unlink(missing_ok=True)
        IdManifest.file(self.folder, old).unlink(missing_ok=True)


@dataclass(frozen=True)
class IdFolder:
    """The ids of one stream, in its checkpoint."""

    checkpoint: StreamCheckpoint

    @property
    def _folder(self) -> Path:
        return self.checkpoint.folder / "ids"

    @property
    def _spark_state(self) -> Path:
        return self.checkpoint.folder / "state"

    def size(self) -> tuple[int, int]:
        """How many ids are known now, and the bytes that they take."""
        batches = IdManifest.batches(self._folder)
        ids = IdManifest.read(self._folder, batches[-1]).ids if batches else 0
        return ids, ids * ID_BYTES

    def made_ready(self, spark: SparkSession, source: Source) -> StreamIds | None:
        """Have a manifest for the next micro-batch to begin with; None if the source has no event ids.

        Only who holds ``StreamCheckpoint.owned`` and its fence may do so. What an overtaken query still adds has a
        manifest of its own.
        """
        ids = None
        if source.fields is not None and source.fields.event_id is not None:
            last = self.checkpoint.last_ended()
            partitions = stream_of(source).state_partitions
            none = IdManifest(event_id=source.fields.event_id, lateness_hours=source.lateness_hours)
            self._found(spark, none, partitions, last).write(self._folder, last)
            self._remove_leftovers(last)
            ids = StreamIds(self._folder, partitions, source.lateness_hours)
        # Spark would refuse a query that has no use for it.
        shutil.rmtree(self._spark_state, ignore_errors=True)
        return ids

    def _found(self, spark: SparkSession, none: IdManifest, partitions: int, last: int) -> IdManifest:
        """What is known after the last micro-batch."""
        if not self.checkpoint.has_begun():
            return none
        batches = [batch for batch in IdManifest.batches(self._folder) if batch <= last]
        if batches:
            found = IdManifest.read(self._folder, batches[-1])
            if batches[-1] < last:
                self._tell(f"of micro-batches {batches[-1] + 1} to {last}")
            if found.event_id == none.event_id:
                return found
        elif earlier_ids.mark(self._folder).exists():
            return earlier_ids.in_folders(self._folder, none, last)
        elif self._spark_state.exists() and last >= 0:
            return earlier_ids.in_spark_state(spark, self.checkpoint, self._folder, none, partitions)
        self._tell("from before this start")
        return none

    def _tell(self, of_what: str) -> None:
        source = self.checkpoint.source
        print(f"the stream of {source} knows no event ids {of_what}: a copy of such a click is a click", flush=True)

    def _remove_leftovers(self, last: int) -> None:
        """Of what no start will need; a task of a broken or overtaken micro-batch may write still."""
        for batch in IdManifest.batches(self._folder):
            if batch < last - _KEPT_BATCHES:
                IdManifest.file(self._folder, batch).unlink(missing_ok=True)
        earlier_ids.mark(self._folder).unlink(missing_ok=True)
        batches = IdManifest.batches(self._folder)
        named = {self._folder / name for batch in batches for name in IdManifest.read(self._folder, batch).names}
        for file in self._folder.rglob("*"):
            is_other = file.suffix != ".json" and file not in named and file.is_file()
            # An overtaken query may remove files too.
            with suppress(FileNotFoundError):
                if is_other and time.time() - file.stat().st_mtime > _KEPT_SECONDS:
                    file.unlink()

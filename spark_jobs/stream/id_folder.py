"""The folder with the event ids that a stream knows, in its checkpoint: made ready at its start, kept by its query."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Row

from include.errors import ClickmillError
from include.sources import Source, stream_of
from spark_jobs.ids.first_arrivals import BatchIds
from spark_jobs.ids.id_manifest import IdManifest, UnreadableIdsError
from spark_jobs.ids.known_ids import ID_BYTES, now_hour
from spark_jobs.lake.lake import Lake
from spark_jobs.stream.checkpoint import StreamCheckpoint
from spark_jobs.stream.ids_of_clicks import version_without, with_ids_of_clicks

#: A file goes so many micro-batches after the last one that has it; what belongs to none, after so many seconds.
_KEPT_BATCHES, _KEPT_SECONDS = 10, 86_400


@dataclass(frozen=True)
class StreamIds:
    """The ids as the work on micro-batches has them; the settings are those of the query's start."""

    folder: Path
    partitions: int
    lateness_hours: int

    def before(self, batch_id: int, of_clicks: Callable[[IdManifest], IdManifest] | None = None) -> BatchIds:
        """What each try of a micro-batch begins with; ``of_clicks`` adds what ``clicks`` knows.

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
        if manifest.newest_hour > now_hour():
            # A clock was ahead. By it ids have been forgotten, and those that came since would not be for long.
            manifest = of_clicks(manifest) if of_clicks else manifest
            manifest = manifest.model_copy(update={"newest_hour": min(manifest.newest_hour, now_hour())})
            manifest.write(self.folder, batch_id - 1)
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

    def size(self) -> tuple[int, int]:
        """How many ids are known now, and the bytes that they take."""
        batches = IdManifest.batches(self._folder)
        ids = IdManifest.read(self._folder, batches[-1]).ids if batches else 0
        return ids, ids * ID_BYTES

    def made_ready(self, lake: Lake, source: Source, stream_id: str) -> StreamIds | None:
        """Have a manifest for the next micro-batch to begin with; None if the source has no event ids.

        Only who holds ``StreamCheckpoint.owned`` and its fence may do so. What an overtaken query still adds has a
        manifest of its own.
        """
        if source.event_id_field is None:
            return None
        last = self.checkpoint.last_ended()
        partitions = stream_of(source).state_partitions
        none = IdManifest(event_id=source.event_id_field, lateness_hours=source.lateness_hours)

        def of_clicks(known: IdManifest) -> IdManifest:
            version = version_without(lake, stream_id, last)
            return with_ids_of_clicks(lake, source.name, known, self._folder, partitions, version)

        self._known(none, last, of_clicks).write(self._folder, last)
        self._remove_leftovers(last)
        return StreamIds(self._folder, partitions, source.lateness_hours)

    def _known(self, none: IdManifest, last: int, of_clicks: Callable[[IdManifest], IdManifest]) -> IdManifest:
        """What is known after the last micro-batch."""
        batches = [batch for batch in IdManifest.batches(self._folder) if batch <= last]
        if not self.checkpoint.has_begun() or not batches:
            return of_clicks(none)
        try:
            manifest = IdManifest.read(self._folder, batches[-1])
            manifest.require_files(self._folder)
        except UnreadableIdsError as error:
            print(f"the stream of {self.checkpoint.source} takes its event ids from clicks: {error}", flush=True)
            return of_clicks(none)
        if manifest.event_id != none.event_id:
            print(
                f"the stream of {self.checkpoint.source} knows no event ids from before this start, as they were of "
                f"another field, {manifest.event_id}: a copy of such a click is a click",
                flush=True,
            )
            return none
        raised = manifest.model_copy(update={"raised_lateness_hours": none.lateness_hours})
        is_behind = batches[-1] < last or manifest.newest_hour > now_hour() or manifest.kept_hours < raised.kept_hours
        return of_clicks(raised) if is_behind else manifest

    def _remove_leftovers(self, last: int) -> None:
        """Of what no start will need; a task of a broken or overtaken micro-batch may write still."""
        named = set()
        for batch in IdManifest.batches(self._folder):
            with suppress(UnreadableIdsError):
                if batch >= last - _KEPT_BATCHES:
                    named |= {self._folder / name for name in IdManifest.read(self._folder, batch).names}
                    continue
            IdManifest.file(self._folder, batch).unlink(missing_ok=True)
        for file in self._folder.rglob("*"):
            is_other = file.suffix != ".json" and file not in named and file.is_file()
            # An overtaken query may remove files too.
            with suppress(FileNotFoundError):
                if is_other and time.time() - file.stat().st_mtime > _KEPT_SECONDS:
                    file.unlink()

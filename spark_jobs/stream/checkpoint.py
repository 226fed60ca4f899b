"""Where a stream left off, and who works on it: one process at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from filelock import FileLock, Timeout

from include.errors import LockHeldError, StreamRunsAlreadyError
from include.locks import locks_of
from include.settings import Settings
from spark_jobs.stream.compatibility import checkpoint_folder, has_begun, keep_with_checkpoint
from spark_jobs.stream.fence import Fence
from spark_jobs.stream.supervision import lock_file


@dataclass(frozen=True)
class StreamCheckpoint:
    """The checkpoint of one source's stream: offsets, state and commits, as Structured Streaming keeps them."""

    source: str
    folder: Path
    lock: Path

    @classmethod
    def of(cls, settings: Settings, source: str, live_key: str | None = None) -> StreamCheckpoint:
        """That of the query that reads the source's topic, or of its live counts by a key; one lock is for all."""
        return cls(source, checkpoint_folder(settings, source, live_key), lock_file(settings, source))

    def stream_id(self) -> str:
        """The id under which the tables know the stream's batches; kept with the checkpoint, and made with it.

        A checkpoint that is begun again numbers its batches from 0 again, and so needs another id.

        Raises:
            ClickmillError: if the folder cannot be written.
        """
        file = self._stream_id
        if not file.exists():
            made = f"{self.source}-{uuid4()}"
            # First among all of them: no table knows an id that is not there.
            keep_with_checkpoint(self._all_ids, "".join(f"{known_id}\n" for known_id in [*self.stream_ids(), made]))
            keep_with_checkpoint(file, f"{made}\n")
        return file.read_text(encoding="utf-8").strip()

    def forget_stream_id(self) -> None:
        """Have another id made, as for a checkpoint that is begun again."""
        self._stream_id.unlink(missing_ok=True)

    @property
    def _stream_id(self) -> Path:
        return self.folder / "stream_id"

    def stream_ids(self) -> list[str]:
        """The ids of all checkpoints that this stream has had, those that were removed too."""
        return self._all_ids.read_text(encoding="utf-8").split() if self._all_ids.exists() else []

    @property
    def _all_ids(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.stream_ids")

    def fence(self) -> Fence:
        """Take the checkpoint over: from now on only who holds this fence's token may write.

        Raises:
            ClickmillError: if the folder cannot be written.
        """
        fence = Fence(self.folder / "fencing_token", str(uuid4()), self.work_tag)
        keep_with_checkpoint(fence.file, f"{fence.token}\n")
        return fence

    def renew_query_id(self) -> None:
        """Give the query another id, by which Spark knows the queries that run; nothing else depends on it.

        Raises:
            ClickmillError: if the folder cannot be written.
        """
        # Hadoop would hold the checksum of the former file against the new one.
        (self.folder / ".metadata.crc").unlink(missing_ok=True)
        keep_with_checkpoint(self.folder / "metadata", json.dumps({"id": str(uuid4())}))

    def has_begun(self) -> bool:
        """Whether it says from which offsets to go on."""
        return has_begun(self.folder)

    def is_whole(self) -> bool:
        """Whether its last micro-batch has ended."""
        return self.last_begun() == self.last_ended()

    def last_begun(self) -> int:
        """The number of the last micro-batch that was begun; -1 before one was."""
        return self._last("offsets")

    def last_ended(self) -> int:
        """The number of the last micro-batch that has ended; -1 before one has."""
        return self._last("commits")

    @property
    def work_tag(self) -> str:
        """The tag of all that the work on its micro-batches asks of the session."""
        return f"stream {self.folder.name}"

    def _last(self, kind: str) -> int:
        return max((int(file.name) for file in self.folder.glob(f"{kind}/[0-9]*")), default=-1)

    def state_partitions(self) -> int:
        """In how many partitions its state is: what the last micro-batch was begun with."""
        last = max(self.folder.glob("offsets/[0-9]*"), key=lambda file: int(file.name))
        # A line for the format's version, one for the settings, and then the offsets.
        settings = json.loads(last.read_text(encoding="utf-8").splitlines()[1])
        return int(settings["conf"]["spark.sql.shuffle.partitions"])

    @contextmanager
    def owned(self, settings: Settings) -> Iterator[None]:
        """Be the only process that works on the stream; ends with the process at the latest.

        Another machine may not see the file that is locked here, nor the checkpoint: if locks are in a database, it is
        kept away by one there.

        Raises:
            StreamRunsAlreadyError: if another one does.
        """
        self.lock.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as locks:
            try:
                locks.enter_context(FileLock(self.lock, timeout=0))
                if settings.locks_database is not None:
                    locks.enter_context(locks_of(settings).held(f"stream-{self.source}", 0))
            except Timeout:
                raise StreamRunsAlreadyError(
                    f"the stream of {self.source} runs already: its checkpoint {self.folder} belongs to another "
                    "process; end that one first"
                ) from None
            except LockHeldError as error:
                raise StreamRunsAlreadyError(
                    f"the stream of {self.source} runs already: {error}; end that one first"
                ) from None
            yield

"""Where a stream begins: what its checkpoint does not say, the batches in its lake do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from include.errors import ClickmillError
from include.tables import CLICKS, QUARANTINED_CLICKS, STREAM_BATCHES
from spark_jobs.lake.lake import Lake
from spark_jobs.stream.checkpoint import StreamCheckpoint


@dataclass(frozen=True)
class StreamStart:
    """A stream that is to go on, with its checkpoint or without."""

    lake: Lake
    checkpoint: StreamCheckpoint
    stream_id: str

    @property
    def has_checkpoint(self) -> bool:
        """Whether the checkpoint says what has been read by this stream."""
        return self.checkpoint.has_begun()

    def earlier_batches(self, of_input: Callable[[Mapping[str, Any]], bool]) -> list[dict[str, Any]]:
        """The rows of ``stream_batches`` that other checkpoints of the source left, of this input only.

        Raises:
            ClickmillError: if the checkpoint was lost in the middle of a batch or not as a whole.
        """
        source = self.checkpoint.source
        stored = self.lake.read_rows(STREAM_BATCHES, STREAM_BATCHES.column_names, [("source", "=", source)])
        rows = [row for row in stored if of_input(row)]
        if self.has_checkpoint:
            return [row for row in rows if row["stream_id"] != self.stream_id]
        # Of all inputs: what a batch of another topic has left is not completed by this one either.
        last_batches = dict.fromkeys(self.checkpoint.stream_ids(), -1)
        for row in stored:
            last_batches[row["stream_id"]] = max(row["batch_id"], last_batches.get(row["stream_id"], -1))
        if last_batches.get(self.stream_id, -1) >= 0:
            raise ClickmillError(
                f"the checkpoint of {source} has lost its offsets but kept its stream_id {self.stream_id}: the tables "
                "would take its next batches for those that they have; remove its folder as a whole"
            )
        for stream_id, last_batch in last_batches.items():
            self._require_whole_batches(stream_id, last_batch)
        if rows:
            print(
                f"the stream of {source} has no checkpoint: it goes on after the batches in the lake, and takes "
                "the event ids that it knows from clicks",
                flush=True,
            )
        return rows

    def _require_whole_batches(self, stream_id: str, last_batch: int) -> None:
        """See that no table has rows of a batch that ``stream_batches``, which is written last, does not have."""
        for table in (CLICKS, QUARANTINED_CLICKS):
            stored = self.lake.stored(table)
            written = stored.transaction_version(stream_id) if stored else None
            if written is not None and written > last_batch:
                raise ClickmillError(
                    f"table {table.name} has rows of batch {written} of stream {stream_id}, which had not ended when "
                    "its checkpoint was removed: they would be read twice, or stay in no account; bring the checkpoint "
                    "back, or restore the table to the version before them"
                )

"""What a commit of delta-rs says of itself beside its files."""

from __future__ import annotations

from dataclasses import dataclass

from deltalake import CommitProperties, DeltaTable, Transaction

#: Of a commit that must not follow one that it does not know.
NOT_TRIED_AGAIN = CommitProperties(max_commit_retries=0)


@dataclass(frozen=True)
class StreamTransaction:
    """A micro-batch of a stream: Delta writes the rows of each once, however often it is asked to.

    The stream's id is never used again once its batches are numbered from 0 again: Delta would drop their rows.
    """

    stream_id: str
    batch_id: int

    def is_in(self, stored: DeltaTable | None) -> bool:
        """Whether the table has the rows of this micro-batch, or of a later one; not if it has not been made."""
        last = stored.transaction_version(self.stream_id) if stored else None
        return last is not None and last >= self.batch_id

    def as_committed(self, retries: int | None = None) -> CommitProperties:
        """As a commit names it, which is tried again that often; None: as often as delta-rs does."""
        named = [Transaction(self.stream_id, self.batch_id)]
        return CommitProperties(app_transactions=named, max_commit_retries=retries)

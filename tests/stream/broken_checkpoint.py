"""A checkpoint, and its tables, as a crash leaves them."""

from __future__ import annotations

from pathlib import Path

from deltalake import DeltaTable

from include.tables import CLICKS, QUARANTINED_CLICKS, STREAM_BATCHES

#: In the order in which a micro-batch commits them.
TABLES = (CLICKS, QUARANTINED_CLICKS, STREAM_BATCHES)


def forget_end_of_batch(checkpoint: Path, batch: int) -> None:
    """Let the checkpoint be as it was before the batch ended: one without lines may have come after it."""
    for kind, first in (("commits", batch), ("offsets", batch + 1)):
        for file in (checkpoint / kind).glob("[0-9]*"):
            if int(file.name) >= first:
                file.unlink()
                file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def forget_last_commit(table: Path) -> None:
    """Let the table be as it was before its last commit."""
    for file in (table / "_delta_log").glob(f"*{DeltaTable(table).version():020d}*"):
        file.unlink()

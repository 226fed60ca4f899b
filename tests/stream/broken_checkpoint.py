"""A checkpoint as a crash leaves it."""

from __future__ import annotations

from pathlib import Path


def forget_end_of_batch(checkpoint: Path, batch: int) -> None:
    """Let the checkpoint be as it was before the batch ended: one without lines may have come after it."""
    for kind, first in (("commits", batch), ("offsets", batch + 1)):
        for file in (checkpoint / kind).glob("[0-9]*"):
            if int(file.name) >= first:
                file.unlink()
                file.with_name(f".{file.name}.crc").unlink(missing_ok=True)

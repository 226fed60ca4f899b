"""Rows in another order, however many they are: sorted part by part, the parts merged from the disk."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import pyarrow as pa
from pyarrow.ipc import new_file, open_file

from include.storage import filled_here

#: By a column upwards or, if it has numbers, downwards; no column has nulls.
Order = Sequence[tuple[str, Literal["ascending", "descending"]]]
#: Of rows so many bytes are sorted at a time. Of each such part one piece is in memory when all are merged.
PART_BYTES = 64 << 20
PIECE_BYTES = 1 << 19


def sorted_rows(rows: Iterable[pa.RecordBatch], order: Order, scratch: Path) -> Iterator[pa.Table]:
    """The rows in this order, in pieces. If there are several parts, they are in a folder of ``scratch`` meanwhile."""
    with ExitStack() as until_the_end:
        yield from _merged(_sorted_parts(rows, order, scratch, until_the_end), order)


def _sorted_parts(
    rows: Iterable[pa.RecordBatch], order: Order, scratch: Path, until_the_end: ExitStack
) -> list[Iterator[pa.Table]]:
    """Each in pieces: of several from files, whose folder is removed in the end."""
    parts: list[Iterator[pa.Table]] = []
    part: list[pa.RecordBatch] = []
    size = 0
    for batch in rows:
        if part and size + batch.nbytes > PART_BYTES:
            if not parts:
                folder = until_the_end.enter_context(filled_here(scratch / f"sorted-{uuid4()}"))
            parts.append(_kept(_sorted(part, order), folder / f"{len(parts)}.arrow"))
            part, size = [], 0
        part.append(batch)
        size += batch.nbytes
    if part:
        last = _sorted(part, order)
        parts.append(iter([last]) if not parts else _kept(last, folder / f"{len(parts)}.arrow"))
    return parts


def _sorted(part: Sequence[pa.RecordBatch], order: Order) -> pa.Table:
    return pa.Table.from_batches(part).sort_by(list(order))


def _kept(rows: pa.Table, file: Path) -> Iterator[pa.Table]:
    """Write the rows; they are read again in pieces as they are asked for."""
    of_piece = max(1, len(rows) * PIECE_BYTES // max(rows.nbytes, 1))
    with file.open("wb") as stream, new_file(stream, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=of_piece)
    return _pieces(file)


def _pieces(file: Path) -> Iterator[pa.Table]:
    with file.open("rb") as stream, open_file(stream) as reader:
        for number in range(reader.num_record_batches):
            yield pa.Table.from_batches([reader.get_batch(number)])


def _merged(parts: Sequence[Iterator[pa.Table]], order: Order) -> Iterator[pa.Table]:
    waiting = [(piece, part) for part in parts if (piece := next(part, None))]
    while len(waiting) > 1:
        # What comes until one of the pieces ends; of what comes after that, other parts may have rows in between.
        end = min(_key(piece, order, len(piece) - 1) for piece, _ in waiting)
        ready, left = [], []
        for piece, part in waiting:
            count = bisect_right(range(len(piece)), end, key=partial(_key, piece, order))
            ready.append(piece.slice(0, count))
            rest = piece.slice(count) if count < len(piece) else next(part, None)
            if rest:
                left.append((rest, part))
        waiting = left
        yield pa.concat_tables(ready).sort_by(list(order))
    for piece, part in waiting:
        yield piece
        yield from part


def _key(rows: pa.Table, order: Order, place: int) -> tuple[Any, ...]:
    values = ((rows[name][place].as_py(), direction) for name, direction in order)
    return tuple(-value if direction == "descending" else value for value, direction in values)

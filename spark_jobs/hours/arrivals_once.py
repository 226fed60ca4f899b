"""The stored arrivals of a log hour, each once: an ingest or a replay that was killed leaves one in several tables.

An arrival is known by its place, ``file`` and ``line``. They are put in order in bounded memory, however many they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.engine.sorted_rows import Order, sorted_rows
from spark_jobs.lines.columns import as_array, as_numpy

#: The column that says of which of the tables a row is, from 0; lines that were recovered are of the one below.
TABLE = "table_number"
_AGAIN = -1
_ORDER: Order = [("file", "ascending"), ("line", "ascending"), (TABLE, "ascending")]


def arrivals_once(
    tables: Sequence[Iterable[pa.RecordBatch]],
    scratch: Path,
    recovered: Iterable[pa.RecordBatch] = (),
    withdrawn: str | None = None,
) -> Iterator[pa.Table]:
    """The rows of the tables, in the order of their places, with ``TABLE``; all have the same columns.

    Of each place those of the first table are taken. Where these are what the replay ``withdrawn`` has recovered, by
    their ``replay_id``, the rows in ``recovered`` are. Many rows wait in ``scratch`` meanwhile.
    """
    numbered = [(_AGAIN, recovered), *enumerate(tables)]
    rows = (_of_table(batch, number) for number, batches in numbered for batch in batches)
    for places in _whole_places(sorted_rows(rows, _ORDER, scratch)):
        yield places.filter(_are_taken(places, withdrawn))


def _of_table(rows: pa.RecordBatch, number: int) -> pa.RecordBatch:
    return rows.append_column(TABLE, pa.array(np.full(len(rows), number)))


def _whole_places(pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Pieces that do not end within the rows of a place; none is empty."""
    rest: pa.Table | None = None
    for piece in pieces:
        rows = pa.concat_tables([rest, piece]) if rest is not None else piece
        last = int(_firsts(rows)[-1])
        rest = rows.slice(last)
        if last:
            yield rows.slice(0, last)
    if rest is not None:
        yield rest


def _firsts(rows: pa.Table) -> np.ndarray[Any, Any]:
    """The first row of each place."""
    files = as_array(rows["file"])
    is_first = np.diff(as_numpy(rows["line"])) != 0
    is_first |= as_numpy(pc.not_equal(files[1:], files[:-1]))
    return np.flatnonzero(np.append(True, is_first))


def _are_taken(rows: pa.Table, withdrawn: str | None) -> pa.BooleanArray:
    firsts = _firsts(rows)
    of_place = np.diff(firsts, append=len(rows))
    table = as_numpy(rows[TABLE])
    again = np.add.reduceat(table == _AGAIN, firsts)
    is_stored = again < of_place
    first_stored = np.where(is_stored, firsts + again, firsts)
    is_its = as_numpy(pc.equal(rows["replay_id"], pa.scalar(withdrawn, pa.string())).fill_null(False))
    is_back = (again > 0) & is_stored & is_its[first_stored]
    # Of lines alone, whose click is no more, none.
    taken = np.where(is_back, _AGAIN, np.where(is_stored, table[first_stored], _AGAIN - 1))
    return pa.array(table == np.repeat(taken, of_place))

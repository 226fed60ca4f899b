"""Stored arrivals, each once, against plain Python; and more of them than memory holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.hours.arrivals_once import TABLE, arrivals_once

ROWS = pa.schema([("file", pa.string()), ("line", pa.int64()), ("text", pa.string()), ("replay_id", pa.string())])
PLACES = st.tuples(st.sampled_from(["a", "b"]), st.integers(1, 4))
Stored = dict[tuple[str, int], str | None]
#: Of each place one row, with the replay that has recovered it.
TABLES = st.dictionaries(PLACES, st.sampled_from([None, "r", "other"]))


@pytest.fixture(autouse=True, scope="module")
def _parts_are_small() -> Iterator[None]:
    """And so are the pieces in which they are merged: of a row or two."""
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr("spark_jobs.engine.sorted_rows.PART_BYTES", 100)
        changed.setattr("spark_jobs.engine.sorted_rows.PIECE_BYTES", 50)
        yield


def rows_of(table: Stored, text: str) -> list[pa.RecordBatch]:
    rows = [{"file": file, "line": line, "text": text, "replay_id": replay} for (file, line), replay in table.items()]
    return pa.Table.from_pylist(rows, ROWS).to_batches(max_chunksize=2)


def found_of(*tables: Iterable[pa.RecordBatch], **withdrawn: Any) -> list[dict[str, Any]]:
    with TemporaryDirectory() as folder:
        return [row for rows in arrivals_once(tables, Path(folder), **withdrawn) for row in rows.to_pylist()]


@settings(deadline=None, max_examples=60)
@given(st.lists(TABLES, min_size=1, max_size=4))
def test_of_each_place_the_first_tables_row_is_taken(tables: list[Stored]) -> None:
    rows = found_of(*(rows_of(table, f"of {number}") for number, table in enumerate(tables)))
    wanted = []
    for place in sorted({place for table in tables for place in table}):
        number = next(number for number, table in enumerate(tables) if place in table)
        wanted.append((*place, f"of {number}", tables[number][place], number))
    assert [(row["file"], row["line"], row["text"], row["replay_id"], row[TABLE]) for row in rows] == wanted


@settings(deadline=None, max_examples=60)
@given(st.lists(TABLES, min_size=1, max_size=3), st.sets(PLACES))
def test_a_withdrawn_replays_lines_are_back_where_its_clicks_were(
    tables: list[Stored], recovered: set[tuple[str, int]]
) -> None:
    lines = rows_of(dict.fromkeys(recovered), "line")
    readers = [rows_of(table, f"of {number}") for number, table in enumerate(tables)]
    rows = found_of(*readers, recovered=lines, withdrawn="r")
    wanted = []
    for place in sorted({place for table in tables for place in table}):
        number = next(number for number, table in enumerate(tables) if place in table)
        is_back = tables[number][place] == "r" and place in recovered
        wanted.append((*place, "line", None) if is_back else (*place, f"of {number}", tables[number][place]))
    assert [(row["file"], row["line"], row["text"], row["replay_id"]) for row in rows] == wanted


def test_more_rows_than_a_part_has_are_put_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_jobs.engine.sorted_rows.PART_BYTES", 1 << 20)
    monkeypatch.setattr("spark_jobs.engine.sorted_rows.PIECE_BYTES", 1 << 16)
    count, of_batch = 30_000, 1_000

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(count, 0, -of_batch):
            lines = range(start, start - of_batch, -1)
            columns = [["a"] * of_batch, lines, [f"{line:0200}" for line in lines], [None] * of_batch]
            yield pa.RecordBatch.from_pydict(dict(zip(ROWS.names, columns, strict=True)), ROWS)

    rows = found_of(batches(), batches())
    assert [(row["line"], row[TABLE]) for row in rows] == [(line, 0) for line in range(1, count + 1)]

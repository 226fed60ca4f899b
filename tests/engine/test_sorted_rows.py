"""Rows in order, however many parts they are sorted in."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.engine import sorted_rows as module
from spark_jobs.engine.sorted_rows import sorted_rows

SCHEMA = pa.schema([("key", pa.string()), ("count", pa.int64()), ("note", pa.string())])
ORDER = [("count", "descending"), ("key", "ascending")]


def batches(rows: list[tuple[str, int]], cuts: list[int]) -> list[pa.RecordBatch]:
    places = sorted([0, len(rows), *(cut for cut in cuts if cut < len(rows))])
    return [
        pa.RecordBatch.from_pylist([{"key": key, "count": count} for key, count in rows[start:end]], SCHEMA)
        for start, end in pairwise(places)
    ]


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.tuples(st.text("aé\u0000\uffff\U0001f600", max_size=3), st.integers(-2, 2)), max_size=40),
    st.lists(st.integers(0, 40)),
    st.sampled_from([1, 100, 1 << 20]),
    st.sampled_from([1, 50, 1 << 20]),
)
def test_rows_come_in_order_however_they_are_cut(
    rows: list[tuple[str, int]], cuts: list[int], part_bytes: int, piece_bytes: int
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PART_BYTES", part_bytes)
        patch.setattr(module, "PIECE_BYTES", piece_bytes)
        pairs = [
            (row["key"], row["count"])
            for piece in sorted_rows(batches(rows, cuts), ORDER, Path(folder))
            for row in piece.to_pylist()
        ]
    assert pairs == sorted(rows, key=lambda row: (-row[1], row[0].encode()))


def test_memory_is_that_of_a_part_and_of_a_piece_of_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART_BYTES", 1 << 20)
    monkeypatch.setattr(module, "PIECE_BYTES", 1 << 14)

    def rows() -> list[pa.RecordBatch]:
        for number in range(400):
            keys = [f"{number * 7919 % 400:05}-{row:05}".ljust(500) for row in range(100)]
            yield pa.record_batch({"key": keys, "count": [row % 3 for row in range(100)], "note": keys})

    before = pa.total_allocated_bytes()
    most = 0
    for _ in sorted_rows(rows(), ORDER, tmp_path):
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < 6 << 20, "of 40 MB of rows"


def test_few_rows_are_never_written(tmp_path: Path) -> None:
    (piece,) = sorted_rows(batches([("b", 1), ("a", 1), ("c", 2)], [1, 2]), ORDER, tmp_path)
    assert piece["key"].to_pylist() == ["c", "a", "b"]
    assert list(tmp_path.iterdir()) == []
    assert list(sorted_rows([], ORDER, tmp_path)) == []

"""Which lines a replay recovers, against sets of places."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.lines.repairs import Places, RecoveredLines, Replay

FILES = st.sampled_from(["a", "b", "none of these"])
LINES = st.tuples(FILES, st.integers(1, 5), st.sampled_from([7, 8]))
#: With a replay, and a digest that may be unknown.
RECORDED = st.tuples(st.sampled_from("ab"), st.integers(1, 5), st.sampled_from([7, 8, None]), st.sampled_from("rs"))


@settings(deadline=None)
@given(st.lists(st.lists(RECORDED), max_size=3), st.lists(LINES))
def test_a_line_is_recovered_by_its_place_and_what_was_there(
    files: list[list[tuple[str, int, int | None, str]]], lines: list[tuple[str, int, int]]
) -> None:
    schema = {"file": pa.string(), "line": pa.int64(), "digest": pa.int64(), "replay_id": pa.string()}
    with TemporaryDirectory() as folder:
        parts = [Places(Path(folder) / str(number), 0, Replay("r"), are_recorded=True) for number in range(len(files))]
        for part, rows in zip(parts, files, strict=True):
            records = [dict(zip(schema, row, strict=True)) for row in rows]
            pq.write_table(pa.Table.from_pylist(records, pa.schema(schema)), part.path)
        recovered = RecoveredLines(parts)
    its = {(file, line, digest) for rows in files for file, line, digest, replay in rows if replay == "r"}
    table = pa.table({"file": pa.array([line[0] for line in lines], pa.string()), "line": [line[1] for line in lines]})
    table = table.set_column(1, "line", table["line"].cast(pa.int64()))
    digests = np.array([line[2] for line in lines], np.int64)
    at_places = {(file, line) for file, line, _ in its}
    assert recovered.has(table).tolist() == [line[:2] in at_places for line in lines]
    wanted = [line in its or (*line[:2], None) in its for line in lines]
    assert recovered.has(table, digests).tolist() == wanted

"""What is left of rows when lines have gone, against plain Python."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.erasure.kept_rows import Order, are_at, moved

SCHEMA = pa.schema(
    [
        ("file", pa.string()),
        ("line", pa.int64()),
        ("clicked_at", pa.timestamp("us", "UTC")),
        ("is_out_of_order", pa.bool_()),
    ]
)
#: Lines of two files by their place, each with a moment, in the order of the data files.
arrivals = st.dictionaries(
    st.tuples(st.sampled_from(["a.json", "b.json"]), st.integers(1, 12)), st.integers(0, 5), max_size=16
).flatmap(lambda of_place: st.permutations([(*place, moment) for place, moment in of_place.items()]))
sizes = st.integers(1, 5)


def in_pieces(rows: list[tuple[str, int, int]], size: int) -> Iterator[pa.Table]:
    for first in range(0, len(rows), size):
        columns = [*map(list, zip(*rows[first : first + size], strict=True))]
        arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=False)]
        yield pa.table([*arrays, pa.nulls(len(arrays[0]), pa.bool_())], SCHEMA)


@given(arrivals, sizes, sizes)
def test_a_line_is_out_of_order_if_one_before_it_in_its_file_is_later(
    rows: list[tuple[str, int, int]], size: int, other_size: int
) -> None:
    order = Order(in_pieces(rows, size))
    flags = [
        flag for piece in in_pieces(rows, other_size) for flag in order.flagged(piece)["is_out_of_order"].to_pylist()
    ]
    assert flags == [
        any(file == other and line > before and moment < later for other, before, later in rows)
        for file, line, moment in rows
    ]


@given(arrivals, st.sets(st.tuples(st.sampled_from(["a.json", "c.json"]), st.integers(1, 12))))
def test_rows_move_up_by_the_lines_that_have_gone_before_them(
    rows: list[tuple[str, int, int]], gone: set[tuple[str, int]]
) -> None:
    removed = {name: sorted(line for file, line in gone if file == name) for name in ("a.json", "c.json")}
    for piece in in_pieces(rows, 3):
        places = list(zip(piece["file"].to_pylist(), piece["line"].to_pylist(), strict=True))
        is_gone = are_at(piece, gone).tolist()
        assert is_gone == [place in gone for place in places]
        kept = moved(piece.filter(pa.array([not each for each in is_gone])), removed)
        assert kept["line"].to_pylist() == [
            line - sum(each < line for each in removed.get(file, []))
            for file, line in places
            if (file, line) not in gone
        ]

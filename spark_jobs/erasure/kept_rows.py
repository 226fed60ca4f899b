"""What is left of a log hour's rows when some of them and lines of its landed files have gone; a few rows at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.stored_rows import arrow_schema
from include.tables import Table
from spark_jobs.erasure.matches import Mask
from spark_jobs.lake.copied_files import rows_of
from spark_jobs.lake.data_files import DataFile
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.new_files import NewFile, files_of
from spark_jobs.lines.columns import as_numpy, by_text

#: A file and a line of it.
Place = tuple[str, int]


def pieces(table: Table, file: DataFile, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The rows of a data file, as its table is declared, few at a time."""
    for batch in rows_of(file, arrow_schema(table, columns or table.column_names)):
        yield pa.Table.from_batches([batch])


def written(lake: Lake, table: Table, rows: Iterable[pa.Table]) -> list[NewFile]:
    """The new files of these rows of a partition: none of no rows."""
    batches = (batch for part in rows for batch in part.to_batches() if batch.num_rows)
    return list(files_of(batches, table, lake.folder_for_files(table)))


def are_at(rows: pa.Table, places: Collection[Place]) -> Mask:
    """Which rows are at one of these places."""
    mask = as_numpy(pc.is_in(rows["line"], pa.array({line for _, line in places}, pa.int64()))).copy()
    at = np.flatnonzero(mask)
    some = rows.select(["file", "line"]).take(pa.array(at))
    pairs = zip(some["file"].to_pylist(), some["line"].to_pylist(), strict=True)
    mask[at] = [place in places for place in pairs]
    return mask


def moved(rows: pa.Table, removed: Mapping[str, Sequence[int]]) -> pa.Table:
    """Rows by the numbers that their lines have, when these, ascending, have gone from their files."""
    if not removed:
        return rows
    lines = as_numpy(rows["line"]).copy()
    for file, numbers in removed.items():
        of_file = as_numpy(pc.equal(rows["file"], file))
        lines[of_file] -= np.searchsorted(np.array(numbers), lines[of_file])
    return _with_column(rows, "line", pa.array(lines))


class Order:
    """The order of the well-formed lines of a log hour: of which one before it in its file is of a later time.

    17 bytes of each are in memory, and three times as many while it is made.
    """

    def __init__(self, rows: Iterable[pa.Table]) -> None:
        lines, moments = defaultdict[str, list[Any]](list), defaultdict[str, list[Any]](list)
        for piece in rows:
            line, moment = as_numpy(piece["line"]), as_numpy(piece["clicked_at"].cast(pa.int64()))
            for file, of_file in by_text(piece["file"]):
                lines[file].append(line[of_file])
                moments[file].append(moment[of_file])
        self._flags = {
            file: _out_of_order(np.concatenate(lines.pop(file)), np.concatenate(moments.pop(file))) for file in [*lines]
        }

    def flagged(self, rows: pa.Table) -> pa.Table:
        """Some of these rows by that order."""
        line, flags = as_numpy(rows["line"]), np.zeros(len(rows), bool)
        for file, of_file in by_text(rows["file"]):
            known, known_flags = self._flags[file]
            flags[of_file] = known_flags[np.searchsorted(known, line[of_file])]
        return _with_column(rows, "is_out_of_order", pa.array(flags))


def _out_of_order(lines: Any, moments: Any) -> tuple[Any, Mask]:
    """The lines of a file, ascending, and their flags."""
    order = np.argsort(lines, kind="stable")
    in_order, flags = moments[order], np.zeros(len(lines), bool)
    flags[1:] = in_order[1:] < np.maximum.accumulate(in_order)[:-1]
    return lines[order], flags


def _with_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    number = table.schema.get_field_index(name)
    return table.set_column(number, table.schema.field(name), values)

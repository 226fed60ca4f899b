"""New data files of a table, written by Spark's tasks with Arrow; delta-rs commits them (see ``Lake``).

A task writes a file for each partition that it has rows of. Files of a task that fails, or of a run that is killed
before the commit, belong to no version of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from deltalake.transaction import AddAction
from pyarrow.parquet import ParquetWriter
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from include.storage import flush_folder, flush_to_disk, is_on_disk
from include.stored_rows import arrow_schema
from include.tables import Table

#: What a task says of each file that it has written: its path below the table's folder, its size in bytes, the values
#: of its partition as Delta's log has them, and what the log knows of its rows, as JSON.
WRITTEN = pa.schema(
    [
        ("path", pa.string()),
        ("size", pa.int64()),
        ("partition", pa.map_(pa.string(), pa.string())),
        ("statistics", pa.string()),
    ]
)
#: Row groups are written when there are so many bytes of rows: what a task keeps in memory.
_GROUP_BYTES = 32 << 20

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class NewFile:
    """One data file that belongs to no version of its table yet; see ``WRITTEN``."""

    path: str
    size: int
    partition: Mapping[str, str]
    statistics: str

    def as_added(self, now: int) -> AddAction:
        """The file as a commit adds it, at a time in milliseconds since 1970."""
        return AddAction(self.path, self.size, self.partition, now, data_change=True, stats=self.statistics)


def write_files(rows: DataFrame, table: Table, folder: Path, *, are_few: bool = False) -> list[NewFile]:
    """Write the rows, which have the declared columns, as files of the table in this folder.

    If they are few, by this process: workers of Python that have to start take longer than the work.

    Raises:
        PySparkException: if a required column is null in a row, or a file cannot be written; of few rows ValueError or
            OSError.
    """
    if are_few:
        fetched = rows.toArrow().sort_by([(name, "ascending") for name in table.partitioned_by])
        return list(files_of(fetched.to_batches(), table, folder))
    ordered = rows.sortWithinPartitions(*table.partitioned_by) if table.partitioned_by else rows

    def write(batches: Batches) -> Batches:
        for file in files_of(batches, table, folder):
            yield pa.RecordBatch.from_pylist([vars(file)], WRITTEN)

    written = ordered.mapInArrow(write, from_arrow_schema(WRITTEN)).collect()
    return [NewFile(**row.asDict()) for row in written]


def files_of(batches: Iterable[pa.RecordBatch], table: Table, folder: Path) -> Iterator[NewFile]:
    """Write these rows, of which those of a partition come together, a file for each partition."""
    files = TaskFiles(table, folder)
    for batch in batches:
        yield from files.add(batch)
    yield from files.end()


class TaskFiles:
    """The files that one task writes, given its rows bit by bit.

    A partition has one open file, and at most ``most_open`` are open at the same time: before one more is opened, the
    one that has waited longest for rows is closed.
    """

    def __init__(self, table: Table, folder: Path, most_open: int = 1) -> None:
        self._table, self._folder, self._most_open = table, folder, most_open
        self._open: dict[tuple[Any, ...], _OpenFile] = {}

    def add(self, rows: pa.RecordBatch) -> Iterator[NewFile]:
        """Take these rows; gives the files that have come to their end by that.

        Raises:
            ValueError: if a required column is null in one.
        """
        for name in self._table.required_columns:
            if rows[name].null_count:
                raise ValueError(f"a row of {self._table.name} lacks {name}: required by include/tables")
        for partition, piece in _pieces(rows, self._table.partitioned_by):
            file = self._open.pop(partition, None)
            if file is None:
                if len(self._open) == self._most_open:
                    yield self._open.pop(next(iter(self._open))).end()
                file = _OpenFile(self._table, self._folder, partition)
            self._open[partition] = file
            file.add(piece)
            if sum(open_file.waiting_bytes for open_file in self._open.values()) >= _GROUP_BYTES:
                max(self._open.values(), key=lambda open_file: open_file.waiting_bytes).write_group()

    def end(self) -> Iterator[NewFile]:
        """There are no more rows."""
        while self._open:
            yield self._open.popitem()[1].end()


def _pieces(batch: pa.RecordBatch, names: tuple[str, ...]) -> Iterator[tuple[tuple[Any, ...], pa.RecordBatch]]:
    """The rows in their order, cut where one of these columns changes, with the values that they have there."""
    count = batch.num_rows
    if not count:
        return
    changes = np.zeros(count - 1, bool)
    for name in names:
        column = batch[name]
        differs = pc.not_equal(column.slice(1), column.slice(0, count - 1))
        changes |= differs.to_numpy(zero_copy_only=False)
    places = [0, *(np.flatnonzero(changes) + 1).tolist(), count]
    for start, end in pairwise(places):
        # A part of a batch keeps all of it in memory, unless it is copied.
        piece = batch if len(places) == 2 else batch.take(pa.array(range(start, end)))
        yield tuple(piece[name][0].as_py() for name in names), piece


class _OpenFile:
    """A file that is being written, of one partition's rows."""

    def __init__(self, table: Table, folder: Path, partition: tuple[Any, ...]) -> None:
        self._partition = dict(zip(table.partitioned_by, map(str, partition), strict=True))
        self._schema = arrow_schema(table, [name for name in table.column_names if name not in self._partition])
        self._statistics = _Statistics(table)
        # As Hive and delta-rs write it: Europe/Berlin would be two folders.
        of_partition = [f"{name}={quote(value, safe='')}" for name, value in self._partition.items()]
        self._path = "/".join([*of_partition, f"part-{uuid4()}.snappy.parquet"])
        self._file = folder / self._path
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._stream = self._file.open("wb")
        # Of columns inside of others only all can be named.
        repeating = [name for name in self._schema.names if name not in table.distinct] if table.distinct else True
        self._writer = ParquetWriter(self._stream, self._schema, compression="snappy", use_dictionary=repeating)
        self._group: list[pa.RecordBatch] = []
        self.waiting_bytes = 0

    def add(self, rows: pa.RecordBatch) -> None:
        self._group.append(rows)
        self.waiting_bytes += rows.nbytes

    def end(self) -> NewFile:
        self.write_group()
        self._writer.close()
        # A commit that outlives a power cut must not name a file that does not.
        if is_on_disk(self._file):
            flush_to_disk(self._stream)
            flush_folder(self._file.parent)
        self._stream.close()
        return NewFile(self._path, self._file.stat().st_size, self._partition, self._statistics.as_json())

    def write_group(self) -> None:
        if self._group:
            rows = pa.Table.from_batches(self._group).select(self._schema.names).cast(self._schema)
            self._statistics.add(rows)
            self._writer.write_table(rows)
        self._group, self.waiting_bytes = [], 0


@dataclass
class _Statistics:
    """What Delta's log knows of a file's rows: their number, and of the declared columns bounds and nulls.

    Source: Delta's protocol, per-file statistics.
    """

    table: Table
    rows: int = 0
    least: dict[str, Any] = field(default_factory=dict)
    greatest: dict[str, Any] = field(default_factory=dict)
    nulls: dict[str, int] = field(default_factory=dict)

    def add(self, rows: pa.Table) -> None:
        """Count these rows."""
        self.rows += rows.num_rows
        for name in set(self.table.statistics).intersection(rows.column_names):
            self.nulls[name] = self.nulls.get(name, 0) + rows[name].null_count
            bounds = pc.min_max(rows[name]).as_py()
            for known, value, better in ((self.least, bounds["min"], min), (self.greatest, bounds["max"], max)):
                if value is not None:
                    known[name] = better(known.get(name, value), value)

    def as_json(self) -> str:
        """As the log has them."""
        statistics = {
            "numRecords": self.rows,
            "minValues": self.least,
            "maxValues": self.greatest,
            "nullCount": self.nulls,
        }
        return orjson.dumps(statistics, option=orjson.OPT_UTC_Z).decode()

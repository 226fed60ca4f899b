"""Published tables as plain files, for readers without Delta: one Parquet and one CSV file per click hour, or day.

The visitors' sketches and the quarters of hours are left out: who unites visitors reads the tables. Files are written
by tasks, or by the job if there is little; each sorts its rows part by part, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote
from uuid import uuid4

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from include.days import Day
from include.hours import Hour
from include.storage import entries, move, place, remove_folder, write_whole
from include.stored_rows import arrow_schema
from include.tables import QUARTERS, Table
from spark_jobs.engine.sorted_rows import Order, sorted_rows
from spark_jobs.engine.steps import step
from spark_jobs.engine.worker_tasks import TASK_BYTES, work_on_files
from spark_jobs.lake.copied_files import rows_of
from spark_jobs.lake.data_files import DataFile, has_days, may_have_click_hours
from spark_jobs.lake.lake import Lake
from spark_jobs.lines.columns import in_pieces

#: Of rows so many bytes are a row group of a Parquet file.
_GROUP_BYTES = 32 << 20
#: What a task says of a file that it has written: where it is, and where it is to be.
_WRITTEN = pa.schema([("written", pa.string()), ("file", pa.string())])
#: What the names of folders begin with in which files wait for their place; readers leave them out.
_WAITING = ".written-"


@dataclass(frozen=True)
class Partition:
    """A click hour or a day of a published table: its data files, and the folder of its exports."""

    files: tuple[DataFile, ...]
    folder: Path

    def export(self, published: Table, kind: str) -> Path:
        """Its file of that kind: parquet or csv."""
        return self.folder / f"{published.name}.{kind}"

    @property
    def size(self) -> int:
        """Of its data files, in bytes."""
        return sum(file.size for file in self.files)


def exported_columns(table: Table) -> list[str]:
    """The columns of a published table that its files have."""
    return [name for name in table.column_names if name not in ("visitor_sketch", QUARTERS.name)]


def export_hours(lake: Lake, published: Table, hours: Iterable[Hour]) -> None:
    """Replace the files of these click hours of a published table by what it has.

    They are ``exports/<table>/click_date=YYYY-MM-DD/click_hour=HH/<table>.parquet`` and ``.csv``. Raises as
    ``_export``.
    """
    wanted = sorted(set(hours))
    files: dict[Hour, list[DataFile]] = {hour: [] for hour in wanted}
    for file in lake.data_files(published, may_have_click_hours(published, wanted)):
        files[file.click_hour].append(file)
    folder = _folder(lake, published)
    partitions = [Partition(tuple(of_hour), _hour_folder(folder, hour)) for hour, of_hour in files.items()]
    _export(lake, published, partitions)


def export_days(lake: Lake, daily: Table, days: Iterable[Day]) -> None:
    """Replace the files of these days of a published daily table by what it has.

    They are ``exports/<table>/time_zone=Europe%2FBerlin/click_date=YYYY-MM-DD/<table>.parquet`` and ``.csv``; the
    zone's name is escaped as Hive does it. Raises as ``_export``.
    """
    files: dict[Day, list[DataFile]] = {day: [] for day in days}
    for file in lake.data_files(daily, has_days(files)):
        files[Day(file.partition["time_zone"], file.partition["click_date"])].append(file)
    folder = _folder(lake, daily)
    _export(lake, daily, [Partition(tuple(of_day), _day_folder(folder, day)) for day, of_day in files.items()])


def _folder(lake: Lake, published: Table) -> Path:
    return lake.settings.reports / "exports" / published.name


def _hour_folder(folder: Path, hour: Hour) -> Path:
    return folder / f"click_date={hour.day.isoformat()}" / f"click_hour={hour.hour:02d}"


def _day_folder(folder: Path, day: Day) -> Path:
    return folder / f"time_zone={quote(day.time_zone, safe='')}" / f"click_date={day.date.isoformat()}"


def _export(lake: Lake, published: Table, partitions: Sequence[Partition]) -> None:
    """Replace the two files of each partition, busiest key first; one without rows has none. Hold the lake's lock.

    Each file changes at once, one after the other: what a task of a job that was killed still writes is never in its
    place.

    The Parquet files leave the partition's columns to their path, as Hive does: with both, Arrow and pandas refuse
    several files together. The CSV files hold all columns.

    Raises:
        LockLostError: if a lock of the lake is lost before the files are in their places.
    """
    scratch, folder = lake.settings.scratch, _folder(lake, published)
    for left in entries(folder):
        if left.path.name.startswith(_WAITING):
            remove_folder(left.path)
    waiting = folder / f"{_WAITING}{uuid4()}"

    def write(share: Sequence[Partition]) -> Iterator[Mapping[str, str]]:
        for partition in share:
            yield from _written(partition, published, waiting, scratch)

    try:
        with step(lake.spark, f"export {published.name}"):
            have_rows = [partition for partition in partitions if partition.files]
            written = work_on_files(lake.spark, have_rows, lambda of: of.size, TASK_BYTES, write, _WRITTEN)
        lake.require_locks()
        for file in written:
            move(place(file["written"]), place(file["file"]))
        for partition in partitions:
            if not partition.files:
                for kind in ("parquet", "csv"):
                    partition.export(published, kind).unlink(missing_ok=True)
    finally:
        remove_folder(waiting)


def _written(partition: Partition, published: Table, waiting: Path, scratch: Path) -> Iterator[Mapping[str, str]]:
    """Write the two files of a partition, in its order; what does not fit into memory is in ``scratch`` meanwhile."""
    schema = arrow_schema(published, exported_columns(published))
    order: Order = [("click_count", "descending"), (published.key[-1], "ascending")]
    parquet, csv = (waiting / str(uuid4()) for _ in range(2))
    rows = sorted_rows((batch for file in partition.files for batch in rows_of(file, schema)), order, scratch)

    def write(text: BinaryIO) -> None:
        write_whole(parquet, lambda binary: _write(rows, schema, published.partitioned_by, binary, text))

    write_whole(csv, write)
    for kind, file in (("parquet", parquet), ("csv", csv)):
        yield {"written": str(file), "file": str(partition.export(published, kind))}


def _write(
    rows: Iterable[pa.Table], schema: pa.Schema, by_path: Sequence[str], parquet: BinaryIO, csv: BinaryIO
) -> None:
    stored = pa.schema([field for field in schema if field.name not in by_path])
    with pyarrow.parquet.ParquetWriter(parquet, stored) as groups, pyarrow.csv.CSVWriter(csv, schema) as lines:
        for group in in_pieces(rows, _GROUP_BYTES):
            groups.write_table(group.select(stored.names))
            lines.write_table(group)

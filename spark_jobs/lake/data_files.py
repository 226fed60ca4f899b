"""A table's data files as Delta's log has them now, read by delta-rs: in milliseconds, without a Spark job."""

from __future__ import annotations

import operator
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import reduce
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.transaction import RemoveAction
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from include.days import Day
from include.errors import ClickmillError
from include.hours import Hour, by_day, click_hour_of, log_hour_of
from include.tables import Table
from spark_jobs.lake.new_files import NewFile

#: What the names of partition columns begin with where a row is a data file.
_OF_PARTITION = "partition."

#: Chooses all files.
EVERY_FILE = pc.scalar(True)
#: Above this version a table's files alone do not say what rows it has: some may be marked as deleted, for one.
_PLAIN_READER_VERSION = 1


@dataclass(frozen=True)
class DataFile:
    """One data file as Delta's log has it.

    Its name in the table's folder, its size in bytes, the values of its partition, when it was written, how many rows
    it has.
    """

    folder: Path
    name: str
    size: int
    partition: Mapping[str, Any]
    written_at: datetime
    rows: int

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.folder / self.name

    @property
    def click_hour(self) -> Hour:
        """The click hour of its rows, if the table is partitioned by it."""
        return click_hour_of(self.partition)

    @property
    def log_hour(self) -> Hour:
        """The log hour of its rows, if the table is partitioned by it."""
        return log_hour_of(self.partition)

    def as_removed(self, now: int) -> RemoveAction:
        """The file as a commit removes it, at a time in milliseconds since 1970."""
        partition: dict[str, str | None] = {name: str(value) for name, value in self.partition.items()}
        return RemoveAction(self.name, True, now, self.size, partition)

    @property
    def is_whole(self) -> bool:
        """Whether the file is there, in the size that the log says."""
        try:
            return self.path.stat().st_size == self.size
        except FileNotFoundError:
            return False


@dataclass(frozen=True)
class TableVersion:
    """One version of a table.

    ``files`` has a row per data file: ``path``, ``size_bytes``, ``partition.<column>``, and ``min.<column>`` and
    ``max.<column>`` of columns with statistics, null where a file has none.
    """

    folder: Path
    stored: DeltaTable
    files: pa.Table

    @property
    def schema(self) -> StructType:
        """Its columns as Spark has them."""
        return StructType.fromJson(orjson.loads(self.stored.schema().to_json()))

    @classmethod
    def newest(cls, folder: Path, table: Table, number: int | None = None) -> TableVersion:
        """The table in this folder as it is now, or as it was at the version of this number.

        Raises:
            ClickmillError: if its files alone do not say what rows it has, or Delta has forgotten the version.
        """
        try:
            stored = DeltaTable(str(folder), version=number)
        except DeltaError:
            if number is None:
                raise
            raise ClickmillError(
                f"table {table.name} has no version {number} any more: its log has been tidied"
            ) from None
        version = stored.protocol().min_reader_version
        if version > _PLAIN_READER_VERSION:
            raise ClickmillError(
                f"table {folder} has the Delta reader version {version}; expected {_PLAIN_READER_VERSION}: without "
                "deletion vectors and column mapping, which Clickmill does not switch on; "
                "switch them off with ALTER TABLE … DROP FEATURE"
            )
        files = pa.table(stored.get_add_actions(flatten=True))
        for name in (f"{bound}.{column}" for column in table.statistics for bound in ("min", "max")):
            if name not in files.column_names:
                files = files.append_column(name, pa.nulls(files.num_rows))
        return cls(folder, stored, files)

    def chosen(self, *choices: pc.Expression) -> list[DataFile]:
        """The files that one of the choices takes."""
        files = self.files.filter(reduce(operator.or_, choices)) if choices else self.files
        return [_file(self.folder, action) for action in files.to_pylist()]

    def require_files(self, files: Iterable[DataFile]) -> None:
        """See to it that these are of this version.

        Raises:
            ClickmillError: if one is not, as another has replaced it.
        """
        if gone := {file.name for file in files} - {file.name for file in self.chosen()}:
            raise ClickmillError(
                f"nothing is written to {self.folder}: its file {min(gone)} was replaced meanwhile; run it again"
            )

    def not_chosen(self, partitions: Sequence[Mapping[str, str]], choice: pc.Expression) -> list[Mapping[str, str]]:
        """Those of these partitions, as Delta's log has their values, whose files the choice does not take."""
        number = pa.array(range(len(partitions)), pa.int64())
        values = {
            name: pa.array([partition[name.removeprefix(_OF_PARTITION)] for partition in partitions], pa.string()).cast(
                kind
            )
            for name, kind in zip(self.files.schema.names, self.files.schema.types, strict=True)
            if name.startswith(_OF_PARTITION)
        }
        taken = set(pa.table(values | {"number": number}).filter(choice)["number"].to_pylist())
        return [partition for index, partition in enumerate(partitions) if index not in taken]

    def commit(
        self, added: Sequence[NewFile], removed: Sequence[DataFile], properties: CommitProperties | None = None
    ) -> None:
        """Add and remove files in one commit, to this version of the table or, if others only added some, a later one.

        Of nothing to add or remove there is no commit.

        Raises:
            CommitFailedError: if a file that is to be removed has been removed since.
        """
        if not added and not removed:
            return
        now = int(time.time() * 1000)
        self.stored.create_write_transaction(
            [*(file.as_added(now) for file in added), *(file.as_removed(now) for file in removed)],
            mode="append",
            schema=self.stored.schema(),
            partition_by=self.stored.metadata().partition_columns,
            commit_properties=properties,
        )

    def read(self, spark: SparkSession, files: Iterable[DataFile]) -> DataFrame:
        """All rows of these files; one that is lost is an error."""
        paths = [str(file.path) for file in files]
        if not paths:
            return spark.createDataFrame([], self.schema)
        rows = spark.read.schema(self.schema).option("basePath", str(self.folder)).parquet(*paths)
        # Spark puts what the folders say behind what the files say.
        return rows.select(*self.schema.names)


def has_log_hours(source: str, hours: Iterable[Hour]) -> pc.Expression:
    """Choose the files of a source's log hours, of a table that is partitioned by them."""
    of_hours = [
        (pc.field("partition.log_date") == day) & pc.field("partition.log_hour").isin(of_day)
        for day, of_day in by_day(hours).items()
    ]
    return has_source(source) & reduce(operator.or_, of_hours, pc.scalar(False))


def has_source(source: str) -> pc.Expression:
    """Choose the files of a source."""
    return pc.field("partition.source") == source


def has_days(days: Iterable[Day]) -> pc.Expression:
    """Choose the files of these days, of a daily table."""
    of_zones: dict[str, list[date]] = {}
    for day in days:
        of_zones.setdefault(day.time_zone, []).append(day.date)
    of_days = [
        (pc.field("partition.time_zone") == zone) & pc.field("partition.click_date").isin(dates)
        for zone, dates in of_zones.items()
    ]
    return reduce(operator.or_, of_days, pc.scalar(False))


def may_have_click_hours(table: Table, hours: Iterable[Hour]) -> pc.Expression:
    """Choose the files that may have rows of these click hours, by partition or else by their statistics."""
    days = by_day(hours).items()
    if "click_hour" in table.partitioned_by:
        of_hours = [
            (pc.field("partition.click_date") == day) & pc.field("partition.click_hour").isin(of_day)
            for day, of_day in days
        ]
    else:
        of_hours = [
            _may_have("click_date", day) & reduce(operator.or_, (_may_have("click_hour", hour) for hour in of_day))
            for day, of_day in days
        ]
    return reduce(operator.or_, of_hours, pc.scalar(False))


def _may_have(column: str, value: date | int) -> pc.Expression:
    least, greatest = pc.field(f"min.{column}"), pc.field(f"max.{column}")
    return least.is_null() | greatest.is_null() | ((least <= value) & (greatest >= value))


def _file(folder: Path, action: Mapping[str, Any]) -> DataFile:
    partition = {
        name.removeprefix(_OF_PARTITION): value for name, value in action.items() if name.startswith(_OF_PARTITION)
    }
    written_at = datetime.fromtimestamp(action["modification_time"] / 1000, UTC)
    name, size, rows = unquote(action["path"]), action["size_bytes"], action.get("num_records") or 0
    return DataFile(folder, name, size, partition, written_at, rows)

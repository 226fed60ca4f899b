"""The only place where jobs read and write: landing files, Delta tables and the locks around them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
from deltalake import write_deltalake
from filelock import FileLock
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.errors import ClickmillError
from include.landing import LandedHour
from include.log_hours import Hour, hours_predicate
from include.settings import Settings
from include.tables import BUCKETS_PROPERTY, Table
from spark_jobs.steps import step

LINES_SCHEMA = "value STRING, log_date DATE, log_hour INT, file STRING, line BIGINT, row_id BIGINT"

_ARROW_TYPES = {
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
}

# The lower 33 bits of monotonically_increasing_id count the rows of a partition.
_ROW_IN_PARTITION = 8589934591


class Lake:
    """The Delta tables under one folder, made as ``include.tables`` declares them when first written."""

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self.spark = spark
        self.settings = settings

    def path(self, table: Table) -> Path:
        """The table's folder."""
        return self.settings.lake / table.name

    def exists(self, table: Table) -> bool:
        """Whether the table has been made."""
        return (self.path(table) / "_delta_log").is_dir()

    def read(self, table: Table) -> DataFrame:
        """The table as it is now; with its declared columns and no rows when it has not been made."""
        if not self.exists(table):
            return self.spark.createDataFrame([], ", ".join(f"{c.name} {c.type}" for c in table.columns))
        return self.spark.read.format("delta").load(str(self.path(table)))

    def read_log_hours(self, table: Table, source: str, hours: Iterable[Hour]) -> DataFrame:
        """The rows of a source's log hours."""
        return self.read(table).where(log_hours_predicate(source, hours))

    def read_in_stored_order(self, table: Table, source: str, hours: Iterable[Hour]) -> DataFrame:
        """The rows of a source's log hours with ``file`` and ``position``, the row's place in it, rising.

        Clicks are stored in the order in which they arrived: one file for each landed file and log hour.
        """
        keep_files_whole(self.spark)
        rows = self.read_log_hours(table, source, hours)
        return rows.select("*", F.input_file_name().alias("file"), F.monotonically_increasing_id().alias("position"))

    def read_click_hours(self, table: Table, hours: Iterable[Hour]) -> DataFrame:
        """The rows of these click hours."""
        return self.read(table).where(click_hours_predicate(hours))

    def replace(self, table: Table, rows: DataFrame, predicate: str) -> None:
        """Replace, in one commit, exactly the rows for which the constant predicate is true."""
        self._make(table)
        with step(self.spark, f"write {table.name}"):
            (
                _as_declared(rows, table)
                .write.format("delta")
                .mode("overwrite")
                .option("replaceWhere", predicate)
                .save(str(self.path(table)))
            )

    def append_rows(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add a few rows, made outside Spark, in one commit.

        By delta-rs: in milliseconds, where Spark takes most of a second. Its commits and Spark's do not know of each
        other on a local disk, so the tables written here are written nowhere else.
        """
        self._make(table)
        schema = pa.schema([(column.name, _ARROW_TYPES[column.type]) for column in table.columns])
        columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
        with self.locked(f"append-{table.name}"):
            write_deltalake(self.path(table), pa.Table.from_arrays(arrays, schema=schema), mode="append")

    @contextmanager
    def staged(self, rows: DataFrame, what: str) -> Iterator[DataFrame]:
        """The rows, computed now and kept as Parquet until the end, for several passes that each need few columns."""
        folder = self.settings.scratch / f"staged-{uuid4()}"
        try:
            with step(self.spark, f"stage {what}"):
                rows.write.option("compression", "lz4_raw").parquet(str(folder))
            yield self.spark.read.schema(rows.schema).parquet(str(folder))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def rows(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> DataFrame:
        """Rows made outside Spark as a frame with the table's columns."""
        return self.spark.createDataFrame(list(rows), ", ".join(f"{c.name} {c.type}" for c in table.columns))

    def buckets(self, table: Table) -> int:
        """The number of buckets of a co-partitioned table: its property, or the setting before it is made."""
        if not self.exists(table):
            return self.settings.pipeline.buckets
        detail = self.spark.sql(f"SHOW TBLPROPERTIES delta.`{self.path(table)}` ('{BUCKETS_PROPERTY}')")
        value = detail.collect()[0]["value"]
        if not str(value).isdigit():
            raise ClickmillError(
                f"table {table.name} has {BUCKETS_PROPERTY} = {value!r}; expected a whole number above 0; "
                f"set it with ALTER TABLE delta.`{self.path(table)}` SET TBLPROPERTIES"
            )
        return int(value)

    @contextmanager
    def locked(self, name: str = "lake") -> Iterator[None]:
        """Let one job at a time, on this machine, work on the lake; ends with the process at the latest.

        Delta itself keeps two writers of the same rows apart. It cannot know that what one of them is about to write
        was computed from rows that the other has replaced since, nor that two tables are to be read as they were at
        one moment.
        """
        self.settings.locks.mkdir(parents=True, exist_ok=True)
        with FileLock(self.settings.locks / f"{name}.lock"):
            yield

    def _make(self, table: Table) -> None:
        if self.exists(table):
            return
        with self.locked(f"make-{table.name}"):
            self.spark.sql(self._create_statement(table))

    def _create_statement(self, table: Table) -> str:
        columns = ",\n  ".join(
            f"{column.name} {column.type}{' NOT NULL' if column.required else ''} COMMENT {_quoted(column.comment)}"
            for column in table.columns
        )
        properties = (
            {"delta.dataSkippingStatsColumns": ",".join(table.statistics)}
            if table.statistics
            else {"delta.dataSkippingNumIndexedCols": "0"}
        )
        if table.bucket_key:
            properties[BUCKETS_PROPERTY] = str(self.settings.pipeline.buckets)
        listed = ", ".join(f"{_quoted(name)} = {_quoted(value)}" for name, value in properties.items())
        partitioned = f"\nPARTITIONED BY ({', '.join(table.partitioned_by)})" if table.partitioned_by else ""
        return (
            f"CREATE TABLE IF NOT EXISTS delta.`{self.path(table)}` (\n  {columns}\n) USING delta"
            f"{partitioned}\nCOMMENT {_quoted('One row: ' + table.grain)}\nTBLPROPERTIES ({listed})"
        )


def read_lines(spark: SparkSession, landed: Sequence[LandedHour], *, skip_damage: bool = False) -> DataFrame:
    """Every line of the landed files with its log hour, file name and line number from 1.

    With ``skip_damage`` a file that breaks off, such as a truncated gzip, gives the lines before the damage.
    """
    files = [str(file) for hour in landed for file in hour.files]
    if not files:
        return spark.createDataFrame([], LINES_SCHEMA)
    source_folder = landed[0].folder.parent.parent
    keep_files_whole(spark)
    text = (
        spark.read.schema("value STRING, log_date DATE, log_hour INT")
        .option("basePath", str(source_folder))
        .option("lineSep", "\n")
        .option("ignoreCorruptFiles", skip_damage)
        .text(files)
    )
    return text.select(
        "value",
        "log_date",
        "log_hour",
        F.col("_metadata.file_name").alias("file"),
        (F.monotonically_increasing_id().bitwiseAND(F.lit(_ROW_IN_PARTITION)) + 1).alias("line"),
        F.monotonically_increasing_id().alias("row_id"),
    )


def keep_files_whole(spark: SparkSession) -> None:
    """One file, one partition, whatever their sizes: so that the row's number in the partition is its place."""
    spark.conf.set("spark.sql.files.openCostInBytes", 1 << 50)
    spark.conf.set("spark.sql.files.maxPartitionBytes", 1 << 50)


def log_hours_predicate(source: str, hours: Iterable[Hour]) -> str:
    """A constant predicate for a source's log hours, on partition columns only."""
    return f"source = {_quoted(source)} AND ({hours_predicate(hours, 'log_date', 'log_hour')})"


def click_hours_predicate(hours: Iterable[Hour]) -> str:
    """A constant predicate for click hours."""
    return hours_predicate(hours, "click_date", "click_hour")


def _as_declared(rows: DataFrame, table: Table) -> DataFrame:
    return rows.select(*(F.col(column.name).cast(column.type) for column in table.columns))


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

"""Rows of data files, written by tasks as files of a table with the same partitions: no row passes through the job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pyarrow.parquet import ParquetFile
from pyspark.sql import SparkSession

from include.storage import filesystem_of, key_of
from include.stored_rows import arrow_schema, as_wanted
from include.tables import Table
from spark_jobs.engine.worker_tasks import TASK_BYTES, work_on_files
from spark_jobs.lake.data_files import DataFile
from spark_jobs.lake.new_files import WRITTEN, NewFile, files_of

_NOTHING: Mapping[str, Any] = MappingProxyType({})
#: So many rows are in memory: with visitors' sketches, and those of quarters, some 80 MB at most.
_ROWS = 1 << 12


def copy_files(spark: SparkSession, files: Sequence[DataFile], table: Table, folder: Path) -> list[NewFile]:
    """Write the rows of these files into the table's folder; a column that they lack is null.

    Raises:
        OSError, pa.ArrowException, PySparkException: if a file is lost or damaged, or one cannot be written.
        ValueError: if a required column is null in a row.
    """

    def copy(share: Sequence[DataFile]) -> Iterator[Mapping[str, Any]]:
        return map(vars, copies_of(share, table, folder))

    # Of a partition, one file, unless its rows are of several tasks.
    written = work_on_files(spark, _in_order(files, table), attrgetter("size"), TASK_BYTES, copy, WRITTEN)
    return [NewFile(**row) for row in written]


def copies_of(
    files: Sequence[DataFile], table: Table, folder: Path, constants: Mapping[str, Any] = _NOTHING
) -> Iterator[NewFile]:
    """The same by this process, with constants in place of what the rows have in some columns.

    Raises:
        OSError, pa.ArrowException, ValueError: as ``copy_files``.
    """
    schema = arrow_schema(table, table.column_names)
    rows = (batch for file in _in_order(files, table) for batch in rows_of(file, schema, constants))
    return files_of(rows, table, folder)


def _in_order(files: Sequence[DataFile], table: Table) -> list[DataFile]:
    return sorted(files, key=lambda file: [file.partition[name] for name in table.partitioned_by])


def rows_of(file: DataFile, wanted: pa.Schema, constants: Mapping[str, Any] = _NOTHING) -> Iterator[pa.RecordBatch]:
    """These columns of a file's rows, those of its partition too, few at a time; null where it has none."""
    constants = {**file.partition, **constants}
    with ParquetFile(key_of(file.path), filesystem=filesystem_of(file.path)) as stored:
        there = [name for name in wanted.names if name in stored.schema_arrow.names and name not in constants]
        for batch in stored.iter_batches(_ROWS, columns=there, use_threads=False):
            yield as_wanted(batch, wanted, constants)

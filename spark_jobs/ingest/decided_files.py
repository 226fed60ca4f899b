"""Arrivals as data files of the tables that take them, written by the workers from what they have staged.

No row passes through Spark on the way: to write a click as Spark's row takes four times as long as all of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import ParquetFile, read_table
from pyspark.sql import SparkSession

from include.stored_rows import arrow_schema
from include.tables import CLICKS, DUPLICATE_CLICKS, QUARANTINED_CLICKS, Table
from spark_jobs.engine.worker_tasks import run_tasks
from spark_jobs.ids.partitions import Numbers
from spark_jobs.lake.new_files import WRITTEN, NewFile, TaskFiles
from spark_jobs.lines.columns import as_numpy, is_among, is_null, table_of
from spark_jobs.lines.kept import is_quarantined
from spark_jobs.lines.times import HOUR_MICROS

_SCHEMAS = {table: arrow_schema(table, table.column_names) for table in (CLICKS, DUPLICATE_CLICKS, QUARANTINED_CLICKS)}
#: What follows of a row from the source's name, its time, or what was decided.
_ADDED = ("source", "click_date", "click_hour", "first_log_date", "first_log_hour")
_STAGED = [*dict.fromkeys(name for schema in _SCHEMAS.values() for name in schema.names if name not in _ADDED)]
_WRITTEN = pa.schema([("table_name", pa.string()), *WRITTEN])


def write_decided(
    spark: SparkSession,
    staged: Sequence[Path],
    decided: Sequence[Path],
    source: str,
    folders: Mapping[Table, Path],
) -> dict[Table, list[NewFile]]:
    """Write what these staged files have for these tables into their folders, a task for each of the files.

    ``decided`` are files of ``DECIDED``. A line that is left out is in no table.
    """

    def write(file: Path) -> Iterator[Mapping[str, Any]]:
        files = {table: TaskFiles(table, folder) for table, folder in folders.items()}
        for table, rows in decided_rows(file, decided, source, folders):
            for batch in rows.to_batches():
                yield from _rows_written(table, files[table].add(batch))
        for table, of_table in files.items():
            yield from _rows_written(table, of_table.end())

    written: dict[Table, list[NewFile]] = {table: [] for table in folders}
    by_name = {table.name: table for table in folders}
    for row in run_tasks(spark, staged, write, _WRITTEN):
        of_file = row.asDict()
        written[by_name[of_file.pop("table_name")]].append(NewFile(**of_file))
    return written


def _rows_written(table: Table, files: Iterable[NewFile]) -> Iterator[Mapping[str, Any]]:
    return ({"table_name": table.name, **vars(file)} for file in files)


def decided_rows(
    staged: Path, decided: Sequence[Path], source: str, tables: Iterable[Table]
) -> Iterator[tuple[Table, pa.Table]]:
    """The rows of a staged file that these tables take, in its order, as they declare them."""
    with staged.open("rb") as stream:
        file = ParquetFile(stream)
        row_ids, first_hours = _duplicates(decided, pc.min_max(file.read(["row_id"])["row_id"]).as_py())
        for batch in file.iter_batches(columns=[*_STAGED, "row_id"]):
            arrivals = pa.Table.from_batches([batch])
            is_click, of_rows = is_null(arrivals["reason"]), as_numpy(arrivals["row_id"])
            is_duplicate = is_click & is_among(of_rows, row_ids)
            for table in tables:
                if table == CLICKS:
                    yield table, as_clicks(arrivals.filter(pa.array(is_click & ~is_duplicate)), source)
                elif table == DUPLICATE_CLICKS:
                    first = first_hours[np.searchsorted(row_ids, of_rows[is_duplicate])]
                    yield table, _as_duplicates(arrivals.filter(pa.array(is_duplicate)), source, first)
                else:
                    yield table, as_quarantined(arrivals.filter(is_quarantined(arrivals["reason"])), source)


def as_clicks(arrivals: pa.Table, source: str) -> pa.Table:
    """One row per well-formed line, as ``clicks`` declares it, in their order."""
    return _as_declared(CLICKS, arrivals, source, **_click_hours(arrivals))


def as_quarantined(arrivals: pa.Table, source: str) -> pa.Table:
    """One row per rejected line, as ``quarantined_clicks`` declares it, in their order."""
    return _as_declared(QUARANTINED_CLICKS, arrivals, source)


def _as_duplicates(arrivals: pa.Table, source: str, first_hours: Numbers) -> pa.Table:
    """The same as ``duplicate_clicks`` declares it: the accepted ones are of these log hours, since 1970."""
    first = {
        "first_log_date": pa.array(first_hours // 24, pa.int32()).cast(pa.date32()),
        "first_log_hour": pa.array(first_hours % 24, pa.int32()),
    }
    return _as_declared(DUPLICATE_CLICKS, arrivals, source, **_click_hours(arrivals), **first)


def _click_hours(arrivals: pa.Table) -> dict[str, pa.Array]:
    micros = as_numpy(arrivals["clicked_at"].cast(pa.int64()))
    return {
        "click_date": pa.array((micros // (24 * HOUR_MICROS)).astype(np.int32)).cast(pa.date32()),
        "click_hour": pa.array((micros // HOUR_MICROS % 24).astype(np.int32)),
    }


def _as_declared(table: Table, arrivals: pa.Table, source: str, **added: pa.Array) -> pa.Table:
    schema = _SCHEMAS[table]
    columns = {name: arrivals[name] for name in schema.names if name not in _ADDED} | added
    return table_of(schema, columns | {"source": pa.array([source] * len(arrivals), pa.string())}, len(arrivals))


def _duplicates(decided: Sequence[Path], bounds: Mapping[str, int | None]) -> tuple[Numbers, Numbers]:
    """Of what is decided the ids of duplicates between these bounds, in order, and the ``first_hour`` of each.

    There are none if there are no bounds.
    """
    row_ids, first_hours = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
    for path in decided if bounds["min"] is not None else ():
        with path.open("rb") as stream:
            of_these = [("row_id", ">=", bounds["min"]), ("row_id", "<=", bounds["max"])]
            rows = read_table(stream, columns=["row_id", "first_hour"], filters=of_these)
            row_ids.append(as_numpy(rows["row_id"]))
            first_hours.append(as_numpy(rows["first_hour"]))
    together = np.concatenate(row_ids)
    order = np.argsort(together)
    return together[order], np.concatenate(first_hours)[order]

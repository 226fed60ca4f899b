"""Rows and files as ``include.tables`` declares them: brought to the declared columns and types, or refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.errors import ClickmillError
from include.stored_rows import arrow_schema
from include.tables import Table
from spark_jobs.lake.data_files import TableVersion


def columns_of_other_types(version: TableVersion, table: Table) -> dict[str, str]:
    """The columns that are stored with another type than the declared one, and that type."""
    stored = {field.name: field.dataType.simpleString().upper() for field in version.schema.fields}
    return {
        column.name: stored[column.name]
        for column in table.columns
        if column.name in stored and stored[column.name] != column.type.replace(" ", "").upper()
    }


def require_declared_types(version: TableVersion, table: Table) -> None:
    """See to it that files of the declared types may be added. Delta's log takes any; the table could not be read then.

    Raises:
        ClickmillError: if a column is stored with another type.
    """
    for name, type_ in columns_of_other_types(version, table).items():
        declared = next(column.type for column in table.columns if column.name == name)
        raise ClickmillError(
            f"nothing is written to table {table.name}: its column {name} is stored as {type_}, expected {declared}; "
            "move the table's folder away, and run again the log hours that it had"
        )


def as_arrow(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows made outside Spark; a column that a row leaves out is null.

    Raises:
        ValueError: if it is required, or a name is no column.
    """
    known, required = set(table.column_names), set(table.required_columns)
    for row in rows:
        if unknown := sorted(row.keys() - known):
            raise ValueError(f"a row of {table.name} has no column {', '.join(unknown)}: see include/tables")
        if missing := sorted(required - row.keys()):
            raise ValueError(f"a row of {table.name} lacks {', '.join(missing)}: required by include/tables")
    return pa.Table.from_pylist(rows, arrow_schema(table, table.column_names))


def without_rows(spark: SparkSession, table: Table) -> DataFrame:
    """The declared columns, and no rows."""
    return spark.createDataFrame([], ", ".join(f"{column.name} {column.type}" for column in table.columns))


def with_declared(rows: DataFrame, table: Table) -> DataFrame:
    """The rows with the declared columns that they lack, null."""
    stored = set(rows.columns)
    absent = [column for column in table.columns if column.name not in stored]
    return rows.select("*", *(F.lit(None).cast(column.type).alias(column.name) for column in absent))


def as_declared(rows: DataFrame, table: Table) -> DataFrame:
    """The declared columns of the rows, in the declared types; those that they lack are null."""
    return with_declared(rows, table).select(*(F.col(column.name).cast(column.type) for column in table.columns))

"""DuckDB inside this process: one thread's vectorised SQL over Arrow tables, for what Arrow itself has no function."""

from __future__ import annotations

import warnings
from functools import cache

import duckdb
import pyarrow as pa

_ALONE: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
warnings.filterwarnings("ignore", "Arrow output on a DB-API result", UserWarning)


def run_sql(sql: str, **tables: pa.Table) -> pa.Table:
    """The rows of a query over these tables, by name, in their order; macros that it needs may come before it."""
    connection = _connection().cursor()
    try:
        for name, table in tables.items():
            connection.register(name, table)
        # A relation (connection.sql) would plan the query twice: 5 ms, against less for the copy that is warned of.
        return connection.execute(sql).to_arrow_table()
    finally:
        connection.close()


def closed_connection() -> duckdb.DuckDBPyConnection:
    """For SQL of others: a database of its own, from which no file and no setting is reached. To be closed."""
    connection = duckdb.connect(config=_ALONE | {"enable_external_access": False})
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    connection.execute("SET lock_configuration = true")
    return connection


def quoted(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def quoted_name(name: str) -> str:
    """Any text as the name of a column."""
    return '"' + name.replace('"', '""') + '"'


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    """One for the process: Spark's tasks are processes, each with a core."""
    connection = duckdb.connect(config=_ALONE)
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    return connection

"""DuckDB inside this process: one thread's vectorised SQL over Arrow tables, for what Arrow itself has no function."""

from __future__ import annotations

import atexit
import warnings
from functools import cache, lru_cache
from threading import Lock

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


def run_on_lines(sql: str, lines: pa.Table) -> pa.Table:
    """The rows of a query over ``lines``, in their order; it is planned once for all tables with this schema."""
    return _planned(sql, lines.schema).run(lines)


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


class _Lines:
    """What a planned query reads, another table each time: the Arrow PyCapsule interface.

    https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.table = schema.empty_table()

    def __arrow_c_schema__(self) -> object:
        return self.table.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class _Planned:
    """A query over ``lines``: to plan one of many columns takes 7 ms, as long as to read a thousand lines."""

    def __init__(self, sql: str, schema: pa.Schema) -> None:
        self._lines, self._lock = _Lines(schema), Lock()
        self._connection = _connection().cursor()
        self._connection.register("lines", self._lines)
        self._connection.execute(f"PREPARE planned AS {sql}")

    def run(self, lines: pa.Table) -> pa.Table:
        with self._lock:
            self._lines.table = lines
            try:
                return self._connection.execute("EXECUTE planned").to_arrow_table()
            finally:
                self._lines.table = lines.schema.empty_table()


# Files with headers have a query for each header.
_planned = lru_cache(maxsize=100)(_Planned)
# DuckDB complains at the end of a process of connections that are open.
atexit.register(_planned.cache_clear)

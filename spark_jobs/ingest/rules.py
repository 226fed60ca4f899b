"""The rule of a replay: how a quarantined line is repaired.

It is one SQL expression, as DuckDB has it, over ``raw``, ``source`` and ``reason`` of a line. It gives the repaired
line, or null to leave it. It depends on nothing else: so each ingest repairs a line in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import duckdb
import orjson
import pyarrow as pa

from include.errors import ClickmillError, UsageError
from include.log_hours import Hour
from spark_jobs.ingest.columns import as_array
from spark_jobs.ingest.duckdb_sql import closed_connection

#: What a rule sees of a line.
RULE_COLUMNS = ("raw", "source", "reason")
#: Names of the moment that DuckDB takes for functions; and an age, of one moment that until now.
_OF_NOW = {
    "age",
    *("current_date", "current_time", "current_timestamp"),
    *("current_localtime", "current_localtimestamp", "localtime", "localtimestamp"),
}
#: What may not be in a rule: it would see other lines, or give more than one.
_NO_VALUE_OF_ONE_LINE = {"SUBQUERY": "a subquery", "WINDOW": "a window function", "STAR": "a star"}
_EXPECTED = f"expected one SQL expression, as DuckDB has it, over {', '.join(RULE_COLUMNS)}, that gives text"
_FUNCTIONS = "SELECT function_name, function_type, stability FROM duckdb_functions()"


class RuleError(ClickmillError):
    """A rule cannot be applied to a line; raised in Spark's workers."""


def failure_of_rule(error: Exception) -> str | None:
    """What a worker said of a rule that fails; None for another error."""
    said = re.search(r"RuleError: (.*)", str(error))
    return said[1] if said else None


def repaired_texts(rule: str, lines: pa.Table) -> pa.StringArray:
    """What a rule gives of each of these lines, which have its columns, and their place for its errors.

    Raises:
        RuleError: naming the first line to which it cannot be applied.
    """
    with closing(closed_connection()) as connection:
        try:
            return _by_rule(rule, lines, connection)
        except duckdb.Error as error:
            # The text of its error may have the line in it, which is not to be in logs.
            kind = str(error).partition(":")[0]
        while len(lines) > 1:
            half = lines.slice(0, len(lines) // 2)
            try:
                _by_rule(rule, half, connection)
                lines = lines.slice(len(half))
            except duckdb.Error:
                lines = half
    (line,) = lines.to_pylist()
    place = f"{line['source']} {Hour.of(line['log_date'], line['log_hour'])} {line['file']}:{line['line']}"
    raise RuleError(f"the rule of the replay fails at {place} ({line['reason']}): {kind}")


def _by_rule(rule: str, lines: pa.Table, connection: duckdb.DuckDBPyConnection) -> pa.StringArray:
    connection.register("lines", lines.select(RULE_COLUMNS))
    return as_array(connection.sql(f"SELECT {_in_sql(rule)} FROM lines").to_arrow_table()["repaired"])


def require_rule(rule: str) -> None:
    """See to it that a rule depends on nothing but the line, and gives text.

    Raises:
        UsageError: if not, or if it is no SQL expression.
    """
    sql = f"SELECT {_in_sql(rule)} FROM lines"
    with closing(closed_connection()) as connection:
        try:
            tree = orjson.loads(connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()[0][0])
            if tree["error"] or not rule.strip() or len(tree["statements"][0]["node"]["select_list"]) != 1:
                why = tree.get("error_message", "not one value")
                raise UsageError(f"the rule is no SQL expression: {why}; {_EXPECTED}")
            refused = _refused_functions(connection) | {*_NO_VALUE_OF_ONE_LINE.values()}
            for what in _used(tree["statements"][0]["node"]["select_list"]):
                if what in refused:
                    raise UsageError(f"the rule uses {what}: it must depend on nothing but the line; {_EXPECTED}")
            connection.register("lines", pa.table({name: pa.array([], pa.string()) for name in RULE_COLUMNS}))
            (kind,) = connection.sql(sql).types
        except duckdb.Error as error:
            raise UsageError(f"the rule is no SQL expression: {_first_line(error)}; {_EXPECTED}") from None
    if str(kind) != "VARCHAR":
        raise UsageError(f"the rule gives {kind}; {_EXPECTED}")


def _refused_functions(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Those that do not give one value of one line, always the same."""
    known = connection.execute(_FUNCTIONS).fetchall()
    of_line = {
        name for name, kind, stability in known if kind == "macro" or (kind, stability) == ("scalar", "CONSISTENT")
    }
    return {name for name, *_ in known if name not in of_line} | _OF_NOW


def _in_sql(rule: str) -> str:
    # A comment at its end ends with its line.
    return f"({rule}\n) AS repaired"


def _used(tree: Any) -> Iterator[str]:
    """The functions and columns that an expression names, and what is no value of one line."""
    if isinstance(tree, Mapping):
        if found := _NO_VALUE_OF_ONE_LINE.get(str(tree.get("class"))):
            yield found
        yield from [str(tree["function_name"]).lower()] if "function_name" in tree else []
        yield from [str(name).lower() for name in tree.get("column_names", [])[-1:]]
    for inner in tree.values() if isinstance(tree, Mapping) else tree if isinstance(tree, list) else ():
        yield from _used(inner)


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), repr(error))

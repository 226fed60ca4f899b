"""The rule of a replay: how a quarantined line is repaired.

It is one SQL expression, as DuckDB has it, over ``raw``, ``source`` and ``reason`` of a line. It gives the repaired
line, or null to leave it. It depends on nothing else: so each ingest repairs a line in the same way. Named here is what
it may have, not what it may not: a later DuckDB has more functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import duckdb
import orjson
import pyarrow as pa

from include.duckdb_sql import closed_connection
from include.errors import ClickmillError, UsageError
from include.hours import log_hour_of
from include.texts import as_printable, crop_middle
from spark_jobs.lines.columns import as_array

#: What a rule sees of a line.
RULE_COLUMNS = ("raw", "source", "reason")
#: What it may use: functions of one line, always the same, whose text is bounded by ``_longest``.
RULE_FUNCTIONS = frozenset(
    """
    abs ascii base64 ceil char_length chr coalesce concat contains date_part date_trunc decode encode ends_with epoch
    epoch_ms floor from_base64 greatest if ifnull instr json_array_length json_exists json_extract json_extract_path
    json_extract_path_text json_extract_string json_merge_patch json_object json_quote json_type json_valid json_value
    lcase least left len length list_extract lower ltrim md5 nullif ord position prefix regexp_escape regexp_extract
    regexp_extract_all regexp_full_match regexp_matches regexp_replace regexp_split_to_array replace reverse right round
    rtrim sha256 split_part starts_with str_split strftime string_split strip_accents strlen strpos strptime substr
    substring suffix timezone to_base64 to_json to_timestamp translate trim trunc try_strptime ucase unicode upper
    url_decode url_encode
    """.split()
)
#: What DuckDB takes operators and intervals for.
_ALSO_FUNCTIONS = frozenset(
    """
    list_value + - * / // % || ->> ~~ !~~ ~~* !~~* ~~~ like_escape not_like_escape ilike_escape not_ilike_escape
    to_years to_months to_weeks to_days to_hours to_minutes to_seconds to_milliseconds to_microseconds
    """.split()
)
_OPERATORS = frozenset(
    """
    ARRAY_EXTRACT ARRAY_SLICE COMPARE_IN COMPARE_NOT_IN OPERATOR_COALESCE OPERATOR_IS_NOT_NULL OPERATOR_IS_NULL
    OPERATOR_NOT OPERATOR_TRY
    """.split()
)
_TYPES = frozenset(
    """
    BIGINT BLOB BOOLEAN DATE DECIMAL DOUBLE FLOAT HUGEINT INTEGER INTERVAL JSON SMALLINT TIME TIMESTAMP TIMESTAMPTZ
    TINYINT VARCHAR
    """.split()
) | {"BOOL", "INT", "NUMERIC", "STRING", "TEXT", "TIMESTAMP WITH TIME ZONE"}
#: LAMBDA is what ``raw -> '$.url'`` is parsed as; no function that would take another one is allowed.
_KINDS = frozenset({"BETWEEN", "CASE", "CAST", "COMPARISON", "CONJUNCTION", "CONSTANT", "LAMBDA"})
_SPOKEN = {"SUBQUERY": "a subquery", "WINDOW": "a window function", "STAR": "a star", "PARAMETER": "a parameter"}
#: How many times as long as the texts that they are given that of some functions may be; of all others, as long.
_TIMES_AS_LONG = {"strftime": 32, "json_quote": 6, "json_object": 6, "to_json": 6, "json_merge_patch": 6, "chr": 4}
_TIMES_AS_LONG |= dict.fromkeys(("string_split", "str_split", "regexp_split_to_array", "regexp_extract_all"), 4)
_TIMES_AS_LONG |= dict.fromkeys(("url_encode", "strip_accents", "base64", "to_base64", "decode", "regexp_escape"), 4)
_REPLACING = {"replace", "regexp_replace"}
#: A number, a moment, or a digest as text.
_LENGTH_OF_VALUE = 64
#: It is run in Spark's workers: a rule gives at most so many times the text of the line, and so many characters more.
_MOST_TIMES, _MOST_CHARACTERS = 100, 100_000
_LONGEST_RULE = 10_000
_FUNCTIONS_OF_NAME = "SELECT 1 FROM duckdb_functions() WHERE lower(function_name) = lower(?)"
_EXPECTED = f"expected one SQL expression, as DuckDB has it, over {', '.join(RULE_COLUMNS)}, that gives text"
_PARTS = (
    f"it may have the columns {', '.join(RULE_COLUMNS)}, constants, comparisons, AND, OR, NOT, LIKE, IN, BETWEEN, "
    f"CASE, [], casts to {', '.join(sorted(_TYPES))}, and the functions {', '.join(sorted(RULE_FUNCTIONS))}"
)


class RuleError(ClickmillError):
    """A rule cannot be applied to a line; raised in Spark's workers."""


def failure_of_rule(error: Exception) -> str | None:
    """What a worker said of a rule that fails; None for another error."""
    match = re.search(r"RuleError: (.*)", str(error))
    return match[1] if match else None


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
    place = f"{line['source']} {log_hour_of(line)} {line['file']}:{line['line']}"
    raise RuleError(f"the rule of the replay fails at {place} ({line['reason']}): {kind}")


def texts_where_possible(rule: str, lines: pa.Table) -> pa.StringArray:
    """The same, and null of a line to which it cannot be applied."""
    with closing(closed_connection()) as connection:
        try:
            return _by_rule(f"TRY({rule}\n)", lines, connection)
        except duckdb.Error:  # another DuckDB knows no such function any more
            return pa.nulls(len(lines), pa.string())


def _by_rule(rule: str, lines: pa.Table, connection: duckdb.DuckDBPyConnection) -> pa.StringArray:
    connection.register("lines", lines.select(RULE_COLUMNS))
    texts = as_array(connection.sql(_in_sql(rule)).to_arrow_table()["repaired"])
    if len(texts) != len(lines):
        raise duckdb.InvalidInputException(f"{len(texts)} values of {len(lines)} lines")
    return texts


def require_rule(rule: str) -> None:
    """See to it that a rule depends on nothing but the line, and gives text.

    Raises:
        UsageError: if not, or if it is no SQL expression.
    """
    if len(rule) > _LONGEST_RULE:
        raise UsageError(f"the rule has {len(rule):,} characters: expected at most {_LONGEST_RULE:,}")
    with closing(closed_connection()) as connection:
        try:
            parts = list(_parts(_parsed(rule, connection)))
            refused = [part for part in parts if not _is_allowed(part)]
            if all(_is_unknown(part, connection) for part in refused):
                # DuckDB says best what there is no such thing as.
                connection.register("lines", pa.table({name: pa.array([], pa.string()) for name in RULE_COLUMNS}))
                (kind,) = connection.sql(_in_sql(rule)).types
        except (duckdb.Error, orjson.JSONDecodeError, UnicodeError) as error:
            raise _no_expression(_first_line(error)) from None
    if refused:
        raise UsageError(f"the rule uses {_named(refused[0])}: it must depend on nothing but the line; {_PARTS}")
    if str(kind) != "VARCHAR":
        raise UsageError(f"the rule gives {kind}; {_EXPECTED}")
    times, characters = _longest(parts)
    if times > _MOST_TIMES or characters > _MOST_CHARACTERS:
        raise UsageError(
            f"the rule may give {times:,} times the text of a line and {characters:,} characters: expected at most "
            f"{_MOST_TIMES} times and {_MOST_CHARACTERS:,}; replace by shorter texts, or less often"
        )


def _is_unknown(part: Mapping[str, Any], connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether it is a name that DuckDB knows as no function's."""
    if part["class"] not in ("COLUMN_REF", "FUNCTION"):
        return False
    return not connection.execute(_FUNCTIONS_OF_NAME, [_named(part)]).fetchall()


def _in_sql(rule: str) -> str:
    # A comment at its end ends with its line.
    return f"SELECT ({rule}\n) AS repaired FROM lines"


def _parsed(rule: str, connection: duckdb.DuckDBPyConnection) -> Mapping[str, Any]:
    """The expression, of a query that is nothing but this one expression of each line."""
    (tree, expressions), (expected, _) = (_query(text, connection) for text in (rule, "NULL"))
    if not rule.strip() or tree != expected or len(expressions) != 1:
        raise _no_expression("not one value")
    return expressions[0]


def _query(rule: str, connection: duckdb.DuckDBPyConnection) -> tuple[Any, list[Mapping[str, Any]]]:
    """What DuckDB parses, without what it selects; and what it selects."""
    serialized = connection.execute("SELECT json_serialize_sql(?)", [_in_sql(rule)]).fetchall()[0][0]
    # Where in the text a part stands is no matter.
    tree = orjson.loads(re.sub(r'"query_location(_length)?":\d+', '"at":0', serialized))
    if tree["error"]:
        raise _no_expression(_first_line(tree["error_message"]))
    selected = [
        expression for statement in tree["statements"] for expression in statement["node"].pop("select_list", [])
    ]
    return tree, selected


def _parts(expression: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """All expressions in it, itself first, each before those in it."""
    waiting: list[Any] = [expression]
    while waiting:
        tree = waiting.pop()
        if isinstance(tree, Mapping) and "class" in tree:
            yield tree
        waiting.extend(_inner(tree))


def _inner(tree: Any) -> Iterable[Any]:
    return tree.values() if isinstance(tree, Mapping) else tree if isinstance(tree, list) else ()


def _is_allowed(part: Mapping[str, Any]) -> bool:
    match part["class"]:
        case "COLUMN_REF":
            *table, name = (name.lower() for name in part["column_names"])
            return name in RULE_COLUMNS and table in ([], ["lines"])
        case "FUNCTION":
            is_plain = part["qualified_name"]["path"] == [part["function_name"]]
            is_plain &= not any(argument["name"] for argument in part["arguments"])
            return is_plain and part["function_name"].lower() in RULE_FUNCTIONS | _ALSO_FUNCTIONS
        case "TYPE":
            return part["type_name"].upper() in _TYPES
        case "OPERATOR":
            return part["type"] in _OPERATORS
        case kind:
            return kind in _KINDS


def _named(part: Mapping[str, Any]) -> str:
    match part["class"]:
        case "COLUMN_REF":
            name = ".".join(part["column_names"])
        case "FUNCTION":
            name = ".".join(part["qualified_name"]["path"])
        case "TYPE":
            name = f"the type {part['type_name']}"
        case "OPERATOR":
            name = part["type"]
        case kind:
            name = _SPOKEN.get(kind, kind)
    return crop_middle(as_printable(name.lower()), 100)


def _longest(parts: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """At most how long the text of an expression is: so many times that of the line, and so many characters."""
    length_of: dict[int, tuple[int, int]] = {}

    def of_inner(tree: Any) -> tuple[int, int]:
        if id(tree) in length_of:
            return length_of[id(tree)]
        inner = [of_inner(child) for child in _inner(tree)]
        return sum(times for times, _ in inner), sum(characters for _, characters in inner)

    for part in reversed(parts):
        times, characters = of_inner(part)
        match part["class"]:
            case "COLUMN_REF":
                times = 1
            case "CONSTANT":
                characters = len(str(part["literal"]["text"]))
            case "FUNCTION":
                name = part["function_name"].lower()
                longer = _TIMES_AS_LONG.get(name, 1)
                if name in _REPLACING:
                    by_times, by_characters = of_inner(part["arguments"][2:3])
                    # By texts of the line: as if by one that is too long.
                    longer = 1 + by_characters + by_times * _MOST_CHARACTERS
                times, characters = times * longer, characters * longer + _LENGTH_OF_VALUE
            case "CAST":
                characters += _LENGTH_OF_VALUE
        length_of[id(part)] = times, characters
    return length_of[id(parts[0])]


def _no_expression(why: str) -> UsageError:
    return UsageError(f"the rule is no SQL expression: {why}; {_EXPECTED}")


def _first_line(error: Exception | str) -> str:
    return as_printable(next((line.strip() for line in str(error).splitlines() if line.strip()), repr(error)))

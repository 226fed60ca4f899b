"""Lines of access logs, in whatever format the server's configuration has: the SQL by which DuckDB takes them apart.

Formats: ``include.log_formats``; their patterns: ``log_patterns``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from include.duckdb_sql import quoted
from include.log_formats import LogFormat, log_format
from spark_jobs.lines.extraction import Extraction
from spark_jobs.lines.log_patterns import (
    IS_TWO_CLIENTS,
    USER,
    Reading,
    is_one_line,
    steps,
    steps_behind_usual_prefix,
    two_times,
    whole_line,
)
from spark_jobs.lines.pattern_steps import Pattern, extracted, in_steps, or_null

#: A text whose last quotation mark opens another one: its own was not written, and what follows it is in it.
_OPENS_ANOTHER = r'[ \t]"([^"\s][^"]*)?$'


def _only_one_line(format_: LogFormat) -> Callable[[pa.StringArray], pa.StringArray]:
    """The texts, null for those with two times: two lines in one, or half of one, where its writer ended, and another.

    A line that is read for its time alone has the first.
    """
    pattern = two_times(format_)
    return lambda texts: pc.if_else(pc.match_substring_regex(texts, pattern), None, texts)


@cache
def extraction(
    format_: str, roles: frozenset[str] = frozenset(), tested: tuple[tuple[str, str], ...] = ()
) -> Extraction:
    """How the lines of an access log are taken apart: all of its roles, or only these; and what rules look at besides.

    What is no line as the server writes it is read as one with a prefix (a virtual host, syslog, Docker …), then with
    the client in a rarer form or by name, then as one whose quotation marks are not escaped, if there is one way to.
    """
    known = log_format(format_).with_tested(dict(tested))
    wanted = frozenset(known.roles) & (roles or frozenset(known.roles))
    may_have_host = not roles and "host" not in wanted
    slower = wanted | {"host"} if may_have_host else wanted
    unescaped = _unescaped(known, slower)
    named = _of_whole_line(known, slower, "named", unescaped)
    prefixed = _of_whole_line(known, slower, "prefixed", named)
    behind_prefix = _in_steps(known, slower, steps(known, slower, has_prefix=True), prefixed)
    if usual := steps_behind_usual_prefix(known, wanted):
        behind_prefix = _in_steps(known, wanted, usual, behind_prefix)
    return _in_steps(known, wanted, steps(known, wanted), behind_prefix)


def _in_steps(format_: LogFormat, roles: frozenset[str], patterns: list[Pattern], otherwise: Extraction) -> Extraction:
    table, is_formed, taken = in_steps(patterns)
    values = {name: _value(value, name, format_) for name, value in taken.items()}
    reading = Extraction(
        "not_access_log", table, is_formed, values, is_escaped=format_.has_backslashes, otherwise=otherwise
    )
    return reading if is_one_line(format_, roles) else replace(reading, prepared=_only_one_line(format_))


def _value(text: str, role: str, format_: LogFormat) -> str:
    """The SQL of a part; of HAProxy's request what is written as ``#22`` percent-encoded, or it would be a fragment.

    https://docs.haproxy.org/3.0/configuration.html#8.6
    """
    if role == "request" and format_.escape == "haproxy":
        encoded = f"regexp_replace({text}, '#([0-9A-F]{{2}})', '%\\1', 'g')"
        text = f"CASE WHEN contains({text}, '#') THEN {encoded} ELSE {text} END"
    return or_null(text)


def _of_whole_line(
    format_: LogFormat, roles: frozenset[str], reading: Reading, otherwise: Extraction | None
) -> Extraction:
    pattern = whole_line(format_, roles, reading)
    is_formed = "line['time'] <> ''"
    if USER in pattern.names:
        is_formed += f" AND NOT regexp_matches(line['{USER}'], {quoted(IS_TWO_CLIENTS)})"
        if {"host", "client_address"} <= {*pattern.names}:  # or the host is the client, and more stands behind it
            is_formed += " AND NOT (line['host'] <> '' AND line['client_address'] = '-')"
    return Extraction(
        "not_access_log", f"SELECT {extracted('text', pattern)} AS line FROM lines", is_formed,
        {name: _value(f"line['{name}']", name, format_) for name in pattern.names if name != USER},
        _only_one_line(format_), format_.has_backslashes, otherwise,
    )  # fmt: skip


def _unescaped(format_: LogFormat, roles: frozenset[str]) -> Extraction:
    """Lines with quotation marks inside of quoted texts: where the shortest texts that fit are the longest too."""
    short, long = (whole_line(format_, roles, reading) for reading in ("short", "long"))
    opens = " OR ".join(f"regexp_matches(line['{name}'], {quoted(_OPENS_ANOTHER)})" for name in short.names)
    return Extraction(
        "not_access_log",
        f"SELECT {extracted('text', short)} AS line, {extracted('text', long)} AS other FROM lines",
        f"line['time'] <> '' AND line = other AND NOT ({opens})",
        {name: _value(f"line['{name}']", name, format_) for name in short.names},
        prepared=_only_one_line(format_),
        is_escaped=format_.has_backslashes,
    )

"""Lines of access logs, in whatever format the server's configuration has: the SQL by which DuckDB takes them apart.

Formats: ``include.log_formats``; their patterns: ``log_patterns``.
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from include.log_formats import LogFormat, log_format
from spark_jobs.lines.extraction import Extraction
from spark_jobs.lines.log_patterns import Reading, steps, whole_line
from spark_jobs.lines.pattern_steps import Pattern, extracted, in_steps, or_null

#: For lines that are not as servers write them.
_TWO_TIMES = r"(?:\[\d\d/[A-Za-z]{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\].*){2}"


def _one_line(texts: pa.StringArray) -> pa.StringArray:
    """The texts, null for those with two times: half of a line, where its writer ended, and another."""
    return pc.if_else(pc.match_substring_regex(texts, f"(?s){_TWO_TIMES}"), None, texts)


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
    behind_prefix = _in_steps(known, steps(known, slower, has_prefix=True), prefixed)
    return _in_steps(known, steps(known, wanted), behind_prefix)


def _in_steps(format_: LogFormat, patterns: list[Pattern], otherwise: Extraction) -> Extraction:
    table, is_formed, taken = in_steps(patterns)
    values = {name: or_null(value) for name, value in taken.items()}
    is_escaped = format_.escape != "none"
    return Extraction("not_access_log", table, is_formed, values, is_escaped=is_escaped, otherwise=otherwise)


def _of_whole_line(
    format_: LogFormat, roles: frozenset[str], reading: Reading, otherwise: Extraction | None
) -> Extraction:
    pattern = whole_line(format_, roles, reading)
    return Extraction(
        "not_access_log", f"SELECT {extracted('text', pattern)} AS line FROM lines", "line['time'] <> ''",
        {name: or_null(f"line['{name}']") for name in pattern.names}, _one_line, format_.escape != "none", otherwise,
    )  # fmt: skip


def _unescaped(format_: LogFormat, roles: frozenset[str]) -> Extraction:
    """Lines with quotation marks inside of quoted texts: where the shortest texts that fit are the longest too."""
    short, long = (whole_line(format_, roles, reading) for reading in ("short", "long"))
    return Extraction(
        "not_access_log",
        f"SELECT {extracted('text', short)} AS line, {extracted('text', long)} AS other FROM lines",
        "line['time'] <> '' AND line = other",
        {name: or_null(f"line['{name}']") for name in short.names},
        prepared=_one_line,
        is_escaped=format_.escape != "none",
    )

"""Lines of access logs, in whatever format the server's configuration has: the SQL by which DuckDB takes them apart.

Formats: ``include.log_formats``; their patterns: ``log_patterns``.
"""

from __future__ import annotations

from functools import cache

from include.duckdb_sql import quoted
from include.log_formats import LogFormat, log_format
from spark_jobs.lines.extraction import Extraction
from spark_jobs.lines.log_patterns import Pattern, Reading, steps, whole_line

#: Of a part that is not there servers write this; nothing where a format says so.
_ABSENT = "-"


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
    source, tables = "lines", []
    is_formed: list[str] = []
    taken: list[str] = []
    values: dict[str, str] = {}
    for number, pattern in enumerate(patterns):
        step = f"step{number}"
        text = f"substr(text, length({taken[-1]}['before']) + 1)" if taken else "text"
        tables.append(
            f"SELECT {', '.join([f'{text} AS text', *taken])}, {_extracted(text, pattern)} AS {step} FROM {source}"
        )
        taken.append(step)
        source = f"taken{number}"
        always = next(name for name in ("before", "all", "time", "status") if name in pattern.names)
        is_formed.append(f"{step}['{always}'] <> ''")
        values |= {name: _value(step, name) for name in pattern.names if name not in ("before", "all")}
    # What is taken apart twice is taken apart once.
    before = [f"taken{number} AS MATERIALIZED ({table})" for number, table in enumerate(tables[:-1])]
    return Extraction(
        "not_access_log",
        (f"WITH {', '.join(before)} " if before else "") + tables[-1],
        " AND ".join(is_formed),
        values,
        is_escaped=format_.escape != "none",
        otherwise=otherwise,
    )


def _of_whole_line(
    format_: LogFormat, roles: frozenset[str], reading: Reading, otherwise: Extraction | None
) -> Extraction:
    pattern = whole_line(format_, roles, reading)
    return Extraction(
        "not_access_log", f"SELECT {_extracted('text', pattern)} AS line FROM lines", "line['time'] <> ''",
        {name: _value("line", name) for name in pattern.names}, is_escaped=format_.escape != "none",
        otherwise=otherwise,
    )  # fmt: skip


def _unescaped(format_: LogFormat, roles: frozenset[str]) -> Extraction:
    """Lines with quotation marks inside of quoted texts: where the shortest texts that fit are the longest too."""
    short, long = (whole_line(format_, roles, reading) for reading in ("short", "long"))
    return Extraction(
        "not_access_log",
        f"SELECT {_extracted('text', short)} AS line, {_extracted('text', long)} AS other FROM lines",
        "line['time'] <> '' AND line = other",
        {name: _value("line", name) for name in short.names},
        is_escaped=format_.escape != "none",
    )


def _extracted(text: str, pattern: Pattern) -> str:
    return f"regexp_extract({text}, {quoted(pattern.text)}, [{', '.join(map(quoted, pattern.names))}], 's')"


def _value(step: str, name: str) -> str:
    return f"nullif({step}['{name}'], '{_ABSENT}')"

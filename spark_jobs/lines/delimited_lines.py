"""Delimited lines: the SQL by which DuckDB cuts them at their delimiters and quotation marks.

Formats: CSV by RFC 4180, a quoted column on one line; W3C extended by https://www.w3.org/TR/WD-logfile.html; logfmt as
Go's packages write it; those of AWS as in ``include.delimited``. A column that begins with a quotation mark ends with
one: a line where it does not is not taken apart, for where its columns are is not known. ``-`` is no value in any.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from include.delimited import COLUMNS, DelimitedLines
from include.duckdb_sql import quoted
from spark_jobs.lines.delimited_patterns import (
    ANOTHER_TIME,
    column_steps,
    columns_behind,
    columns_with_quotes,
    inner_text,
)
from spark_jobs.lines.extraction import Extraction, first_text
from spark_jobs.lines.pattern_steps import extracted, in_steps
from spark_jobs.lines.w3c_roles import FORWARDED_FOR, NOTHING, as_w3c_means

#: Why a line is not taken apart.
FAULTS = NO_HEADER, BROKEN_QUOTES, WRONG_COLUMNS, NOT_LOGFMT = (
    "no_header",
    "broken_quotes",
    "wrong_columns",
    "not_logfmt",
)

# What stands for characters meanwhile, so that a line can be cut: a delimiter and a tab in a quoted column, and what is
# escaped. A line with quotation marks, or where something may be escaped, that has one of these is not taken apart.
_DELIMITER, _TAB, _QUOTE, _ESCAPE = "\x1f", "\x1e", "\x1d", "\x1c"
_RESERVED = "[\x1c-\x1f]"
_W3C_FIELDS = re.compile(r"^#fields:(.*)", re.IGNORECASE | re.MULTILINE)
#: The last column that a line of these must have.
_NEEDED = {"alb": "user_agent", "elb": "request", "s3": "user_agent"}


def columns_of_header(settings: DelimitedLines, header: str) -> tuple[str, ...] | None:
    """The names of the columns that a header says; None if it is no header for these settings."""
    if settings.format == "w3c":
        directive = _W3C_FIELDS.search(header)
        return tuple(directive[1].lower().split()) if directive else None
    if settings.columns is not None:
        return settings.columns
    quote = settings.quotation
    try:
        (cells,) = csv.reader(
            [header],
            delimiter=settings.separator,
            quotechar=quote or None,
            quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
            strict=True,
            escapechar=settings.escape,
        )
    except (csv.Error, ValueError):
        return None
    names = tuple(cell.strip() for cell in cells)
    roles = settings.roles()
    needed = [roles["time"], *(roles[role] for role in ("url", "path", "request") if role in roles)]
    return names if all(set(role_names) & set(names) for role_names in needed) else None


def _columns_under(settings: DelimitedLines, header: str | None) -> tuple[str, ...] | None:
    """The columns of lines that have this header before them; None if nothing says what they are."""
    columns = None if header is None else columns_of_header(settings, header)
    return settings.named_columns if columns is None else columns


def separator_line(settings: DelimitedLines) -> str:
    """The pattern of the line ``sep=;`` that Excel reads and writes before a table with this delimiter."""
    return rf'^(?i)"?sep={re.escape(settings.separator)}"?[\r\n]*$'


def extraction(
    settings: DelimitedLines, header: str | None, tested: Mapping[str, str] | None = None, *, only_time: bool = False
) -> Extraction:
    """How lines are taken apart that have this header before them in their file; None if there is none.

    ``tested`` are columns that rules look at, by the role as which they are given.
    """
    roles = _roles(settings, tested or {}, only_time=only_time)
    if settings.format == "logfmt":
        return _logfmt(settings, roles)
    columns = _columns_under(settings, header)
    if columns is None:
        nothing = _with_date(dict.fromkeys(roles, NOTHING), settings)
        return Extraction(NO_HEADER, "SELECT text FROM lines", "false", nothing, faults={})
    is_w3c = settings.format == "w3c"
    columns = tuple(map(str.lower, columns)) if is_w3c else columns
    needed_names = {name for names in roles.values() for name in names} | ({"s-port"} if is_w3c else set())
    numbers = {name: number for number, name in reversed([*enumerate(columns, 1)]) if name in needed_names}
    needed = columns.index(_NEEDED[settings.format]) + 1 if settings.format in COLUMNS else None
    fits = f"len(cells) = {len(columns)}"
    if needed:
        behind = f"array_to_string(cells[{needed}:], ' ')"
        fits = (
            f"len(cells) >= {needed} AND NOT regexp_matches({behind}, {quoted(ANOTHER_TIME)}) AND "
            f"regexp_matches({behind}, {quoted(f'^[^ ]*{columns_behind(columns, needed, are_cut=True)}$')})"
        )
    parts = "".join(f", {_cell(number, settings)} AS column{number}" for number in numbers.values())
    cells = {name: f"column{number}" for name, number in numbers.items()}
    of_any = Extraction(
        WRONG_COLUMNS,
        f"SELECT is_quoted, is_quoted AND {fits} AS fits{parts} FROM ({_cut(settings)})",
        "fits",
        _values(roles, columns, cells, settings),
        _without_ends,
        faults={BROKEN_QUOTES: "NOT is_quoted"},
        is_escaped=settings.format in COLUMNS or settings.escape is not None,
    )
    if not needed:
        return of_any
    of_any = replace(of_any, otherwise=_unescaped_quotes(of_any, roles, columns, numbers, settings))
    table, is_formed, taken = in_steps(column_steps(columns, numbers.values(), needed))
    cells = {name: inner_text(taken[f"column{number}"]) for name, number in numbers.items()}
    values = _values(roles, columns, cells, settings)
    is_escaped = of_any.is_escaped
    return Extraction(WRONG_COLUMNS, table, is_formed, values, faults={}, is_escaped=is_escaped, otherwise=of_any)


def _unescaped_quotes(
    of_any: Extraction,
    roles: Mapping[str, tuple[str, ...]],
    columns: tuple[str, ...],
    numbers: Mapping[str, int],
    settings: DelimitedLines,
) -> Extraction:
    r"""Lines of AWS with quotation marks inside of columns, where there is one way to read them.

    S3 escapes none: https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html; ALB writes some as ``\"``.
    """
    short, long = (columns_with_quotes(columns, numbers.values(), reading) for reading in ("short", "long"))
    first = short.names[0]
    table = (
        f"SELECT {extracted('text', short)} AS line, {extracted('text', long)} AS other, "
        f"regexp_matches(text, {quoted(f'(?s)(?:{ANOTHER_TIME}).*{ANOTHER_TIME}')}) AS is_two, "
        f"regexp_full_match(text, {quoted(_of_columns(_ENDED_ONCE))}) AS is_quoted FROM lines"
    )
    texts = {name: f"line['column{number}']" for name, number in numbers.items()}
    behind = columns.index("user_agent") + 1
    cells = {
        name: f"nullif(nullif({text}, ''), '-')" if numbers[name] <= behind else f"nullif({inner_text(text)}, '')"
        for name, text in texts.items()
    }
    return replace(
        of_any,
        table=table,
        is_formed=f"line['{first}'] <> '' AND line = other AND NOT is_two",
        values=_values(roles, columns, cells, settings),
    )


def _values(
    roles: Mapping[str, tuple[str, ...]], columns: tuple[str, ...], cells: Mapping[str, str], settings: DelimitedLines
) -> dict[str, str]:
    """The SQL of the roles, from that of columns by their names."""
    values = {role: _first_of([cells[name] for name in names if name in cells]) for role, names in roles.items()}
    if settings.format == "w3c":
        values |= as_w3c_means(values, columns, cells)
    if settings.format in ("alb", "elb") and "request" in values:  # where none was sent, as TLS failed: "- - - "
        request = values["request"]
        values["request"] = f"CASE WHEN starts_with({request}, '- ') THEN NULL ELSE {request} END"
    if settings.format in ("alb", "elb") and "client_address" in values:
        client = values["client_address"]  # always with a port, which IPv6 without brackets does not show
        values["client_address"] = (
            rf"CASE WHEN {client} LIKE '%:%:%' THEN regexp_replace({client}, '^([^\[]*):\d+$', '\1') ELSE {client} END"
        )
    return _with_date(values, settings)


def _without_ends(texts: pa.StringArray) -> pa.StringArray:
    return pc.ascii_rtrim(texts, "\r\n")


def _roles(
    settings: DelimitedLines, tested: Mapping[str, str], *, only_time: bool = False
) -> dict[str, tuple[str, ...]]:
    roles = settings.roles() | {role: (name,) for role, name in tested.items()}
    if only_time:
        roles = {role: roles[role] for role in ("date", "time") if role in roles}
    if settings.format != "w3c":
        return roles
    if "client_address" in roles and "client_address" not in settings.fields.names():
        roles |= {"forwarded_for": FORWARDED_FOR}
    return {role: tuple(map(str.lower, names)) for role, names in roles.items()}


def _first_of(values: list[str]) -> str:
    return first_text(values) if values else NOTHING


def _with_date(values: Mapping[str, str], settings: DelimitedLines) -> dict[str, str]:
    """The roles, the date as a part of the time; of S3 the brackets around both are left out."""
    others = {role: value for role, value in values.items() if role != "date"}
    if "date" not in values:
        return others
    date, time = values["date"], values["time"]
    if settings.format == "s3":
        date, time = f"ltrim({date}, '[')", f"rtrim({time}, ']')"
    return others | {"time": f"({date} || ' ' || {time})"}


def _cut(settings: DelimitedLines) -> str:
    """The table of lines, as ``cells``; ``is_quoted``: where each column that begins with a quotation mark ends."""
    quote, separator = settings.quotation, settings.separator
    table = "SELECT text FROM lines"
    if not quote:
        return f"SELECT string_split(text, {quoted(separator)}) AS cells, true AS is_quoted FROM ({table})"
    if separator == " ":
        return _cut_at_blanks(quote, table, may_have_inner=settings.format not in COLUMNS)
    has_quote, is_clear = f"contains(text, {quoted(quote)})", f"NOT regexp_matches(text, {quoted(_RESERVED)})"
    is_clear = is_clear if settings.escape else f"NOT {has_quote} OR {is_clear}"
    plain = _unescaped("text", settings.escape, quote)
    table = f"SELECT {plain} AS text, {is_clear} AS is_clear, {has_quote} AS has_quote FROM ({table})"
    hidden = f"replace(part, {quoted(separator)}, {quoted(_DELIMITER)})"
    q, s = re.escape(quote), re.escape(separator)
    column = f"(?:{q}(?:[^{q}]|{q}{q})*{q}|[^{q}{s}]*)"
    table = (
        f"SELECT CASE WHEN has_quote THEN {_inside(quote, hidden)} ELSE text END AS text, "
        f"is_clear AND (NOT has_quote "
        f"OR regexp_full_match(text, {quoted(f'{column}(?:{s}{column})*')})) AS is_quoted FROM ({table})"
    )
    return f"SELECT string_split(text, {quoted(separator)}) AS cells, is_quoted FROM ({table})"


_IN_QUOTES = '"(?:[^"\x1c-\x1f]|"")*"'
#: A column at blanks, quotation marks inside doubled or, of AWS, none; and one with such marks inside.
_ENDED = f'(?:{_IN_QUOTES}|[^" \t\x1c-\x1f]+)'
_ENDED_ONCE = '(?:"[^"\x1c-\x1f]*"|[^" \t\x1c-\x1f]+)'
_WITH_INNER = f'(?:{_IN_QUOTES}|[^" \t\x1c-\x1f][^ \t\x1c-\x1f]*)'


def _of_columns(column: str) -> str:
    return f"[ \t]*{column}(?:[ \t]+{column})*[ \t]*"


def _cut_at_blanks(quote: str, table: str, *, may_have_inner: bool) -> str:
    """The same where blanks, or tabs, stand between columns; some servers write quotation marks inside of some as well.

    Lines with such marks are the few that are cut by an expression, which takes three times as long.
    """
    only_ended = quoted(_of_columns(_ENDED if may_have_inner else _ENDED_ONCE))
    is_quoted = f"regexp_full_match(text, {quoted(_of_columns(_WITH_INNER))})" if may_have_inner else "false"
    table = (
        f"SELECT text, contains(text, {quoted(quote)}) AS has_quote, CASE WHEN has_quote "
        f"THEN regexp_full_match(text, {only_ended}) END AS is_plain FROM ({table})"
    )
    hidden = f"replace(replace(part, ' ', {quoted(_DELIMITER)}), chr(9), {quoted(_TAB)})"
    table = (
        f"SELECT CASE WHEN is_plain THEN {_inside(quote, hidden)} ELSE text END AS text, NOT is_plain AS is_other, "
        f"CASE WHEN is_plain THEN true WHEN has_quote THEN {is_quoted} ELSE true END "
        f"AS is_quoted FROM ({table})"
    )
    single = "CASE WHEN contains(text, '  ') THEN regexp_replace(text, ' +', ' ', 'g') ELSE text END"
    one_by_one = quoted(f"[ \t]+({_WITH_INNER})")
    return (
        f"SELECT CASE WHEN is_other THEN regexp_extract_all(' ' || text, {one_by_one}, 1) "
        f"WHEN contains(text, chr(9)) THEN string_split(text, chr(9)) "
        f"ELSE string_split(trim({single}, ' '), ' ') END AS cells, is_quoted FROM ({table})"
    )


def _inside(quote: str, hidden: str) -> str:
    """The SQL of the text with each ``part`` that is between two quotation marks as ``hidden``."""
    parts = f"string_split(text, {quoted(quote)})"
    each = f"lambda part, place: CASE WHEN place % 2 = 0 THEN {hidden} ELSE part END"
    return f"array_to_string(list_transform({parts}, {each}), {quoted(quote)})"


def _unescaped(text: str, escape: str | None, quote: str) -> str:
    """The SQL of a text in which nothing is escaped, with other characters for what was."""
    if not escape:
        return text
    hidden = f"replace({text}, {quoted(escape * 2)}, {quoted(_ESCAPE)})"
    hidden = f"replace({hidden}, {quoted(escape + quote)}, {quoted(_QUOTE)})"
    return f"CASE WHEN contains({text}, {quoted(escape)}) THEN {hidden} ELSE {text} END"


def _cell(number: int, settings: DelimitedLines) -> str:
    """The SQL of a column's text, null for ``-``."""
    text = f"cells[{number}]"
    if quote := settings.quotation:
        inner = f"replace({text}[2:-2], {quoted(quote * 2)}, {quoted(quote)})"
        inner = f"replace({inner}, {quoted(_DELIMITER)}, {quoted(settings.separator)})"
        inner = f"replace({inner}, {quoted(_TAB)}, chr(9))" if settings.separator == " " else inner
        text = f"CASE WHEN starts_with({text}, {quoted(quote)}) THEN {inner} ELSE {text} END"
    return f"nullif({_escaped_back(text, settings.escape, settings.quotation)}, '-')"


def _escaped_back(text: str, escape: str | None, quote: str) -> str:
    if not escape:
        return text
    return f"replace(replace({text}, {quoted(_QUOTE)}, {quoted(quote)}), {quoted(_ESCAPE)}, {quoted(escape)})"


def clients_pattern(settings: DelimitedLines, header: str | None) -> str | None:
    """For Python's ``re``: the clients' columns of a line as the group ``text``, after ``name``; None without any."""
    names = _roles(settings, {}).get("client_address", ())
    if settings.format == "logfmt":
        words = "|".join(map(re.escape, names))
        return rf'(?P<name>(?:^|\s)(?:{words})=)(?P<text>"(?:[^"\\]|\\.)*"?|[^\s"]*)' if names else None
    columns = _columns_under(settings, header)
    columns = tuple(map(str.lower, columns or ())) if settings.format == "w3c" else columns or ()
    before = [columns.index(name) for name in names if name in columns]
    if not before:
        return None
    quote, separator = re.escape(settings.quotation), re.escape(settings.separator)
    plain, between = ("[^ \\t]+", "[ \\t]+") if settings.separator == " " else (f"[^{separator}]*", separator)
    inner = f"[^{quote}]" if settings.escape is None else f"[^{quote}{re.escape(settings.escape)}]"
    inner += f"|{quote}{quote}" if settings.escape is None else f"|{quote}{quote}|{re.escape(settings.escape)}."
    column = f"(?:{quote}(?:{inner})*{quote}|{plain})" if quote else plain
    places = "|".join(f"(?:{column}{between}){{{number}}}" for number in before)
    return rf"(?P<name>^(?:{places}))(?P<text>{column})"


def _logfmt(settings: DelimitedLines, roles: Mapping[str, tuple[str, ...]]) -> Extraction:
    """Words, each a name, or a name, ``=`` and a value; of a name that comes twice the first is taken.

    With two times a line is two. What is no name and stands alone behind the value of a role is more of it, as of a
    user agent that is not quoted: such a line is none.
    """
    of_any = _logfmt_of_any(settings, roles)
    # Pairs where nothing is escaped and no text has what looks like a pair: nearly all lines.
    pair = r'[^ ="\x00-\x1f\\]+=(?:"[^ "\x00-\x1f\\]*(?: [^ ="\x00-\x1f\\]*)*"|[^ "\x00-\x1f\\]*)'
    is_plain = f"regexp_full_match(text, {quoted(f' *{pair}(?: +{pair})* *')})"
    table = f"SELECT ' ' || text AS text, {is_plain} AS is_plain FROM lines"
    values = {role: _first_of([_plain_value(name) for name in names]) for role, names in roles.items()}
    is_formed = f"is_plain AND NOT ({_has_two_times(roles)})"
    return replace(of_any, table=table, is_formed=is_formed, values=_with_date(values, settings), otherwise=of_any)


def _plain_value(name: str) -> str:
    return inner_text(_behind(name, '^(?:"[^"]*"|[^ ]*)'))


def _behind(name: str, pattern: str) -> str:
    """The SQL of what fits the pattern behind a name and its ``=``, null without such a name."""
    before = quoted(f" {name}=")
    rest = f"substr(text, strpos(text, {before}) + {len(name) + 2})"
    return f"CASE WHEN contains(text, {before}) THEN regexp_extract({rest}, {quoted(pattern)}) END"


def _has_two_times(roles: Mapping[str, tuple[str, ...]]) -> str:
    times = [quoted(f" {name}=") for name in roles["time"]]
    return " OR ".join(f"contains(substr(text, strpos(text, {time}) + 1), {time})" for time in times)


def _logfmt_of_any(settings: DelimitedLines, roles: Mapping[str, tuple[str, ...]]) -> Extraction:
    is_reserved = " OR ".join(f"contains(text, {quoted(stand_in)})" for stand_in in (_QUOTE, _ESCAPE))
    table = f"SELECT {_unescaped('text', chr(92), chr(34))} AS text, {is_reserved} AS is_reserved FROM lines"
    hidden = f"replace(replace(part, ' ', {quoted(_DELIMITER)}), chr(9), {quoted(_TAB)})"
    pair = r'[^ ="\x00-\x1f]+(?:="[^"\x1e\x1f]*"|=[^ "\x00-\x1f]*)'
    pairs, words = (rf"[ \t]*{word}(?:[ \t]+{word})*[ \t]*" for word in (pair, f"{pair}?"))
    table = (
        f"SELECT ' ' || replace(CASE WHEN contains(text, chr(34)) THEN {_inside(chr(34), hidden)} ELSE text END, "
        f"chr(9), ' ') AS text, "
        f"regexp_full_match(text, {quoted(pairs)}) AS are_pairs, NOT is_reserved AND contains(text, '=') AND "
        f"CASE WHEN are_pairs THEN true ELSE regexp_full_match(text, {quoted(words)}) END AS is_formed "
        f"FROM ({table})"
    )
    of_roles = "|".join(re.escape(name) for names in roles.values() for name in names)
    goes_on = rf' (?:{of_roles})=(?:[^ "][^ ]*)? +(?:[^ =]+ +)*[^ =]*[^ =\w.-][^ =]*(?: |$)'
    is_whole = f"CASE WHEN are_pairs THEN true ELSE NOT regexp_matches(text, {quoted(goes_on)}) END"
    table = f"SELECT text, is_formed AND NOT ({_has_two_times(roles)}) AND {is_whole} AS is_formed FROM ({table})"
    values = {role: _first_of([_value(name) for name in names]) for role, names in roles.items()}
    return Extraction(NOT_LOGFMT, table, "is_formed", _with_date(values, settings), _without_ends, faults={})


def _value(name: str) -> str:
    text = _behind(name, "^[^ ]*")
    shown = f"replace(replace(({text})[2:-2], {quoted(_DELIMITER)}, ' '), {quoted(_TAB)}, chr(9))"
    text = f"CASE WHEN starts_with({text}, chr(34)) THEN {shown} ELSE {text} END"
    return f"nullif({_escaped_back(text, chr(92), chr(34))}, '-')"

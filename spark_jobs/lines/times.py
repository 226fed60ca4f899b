"""When a click happened, from the text of its time: SQL expressions for DuckDB, microseconds since 1970 or null."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from include.duckdb_sql import quoted, run_on_lines
from include.time_formats import TimeFormat, TimePattern
from spark_jobs.lines.columns import as_array

#: Microseconds of an hour.
HOUR_MICROS = 3_600_000_000

# RFC 3339, and what of ISO 8601 Java, Python, Go and JavaScript write: minutes only, any number of decimals after a
# point or a comma, an offset of hours, or none, which is UTC. No zone names but UTC's: what PST is depends on who reads
# it. BigQuery, Ruby and PostgreSQL write UTC by its name, Go after the offset.
_DAY = r"\d{4}-\d\d-\d\d"
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d"
_OFFSET = r" ?(?:[Zz]|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)"
_UTC = " ?(?:[+-]00:?00 ?)?(?:UTC|GMT)"
_NAMED_UTC = "(?:[+-]00:?00)?(?:UTC|GMT)$"
#: Of all formats only this one takes a time without an offset for UTC.
UTC_BY_DEFAULT: TimeFormat = "iso8601"
_ISO_8601 = rf"{_DAY}[Tt ]{_CLOCK}(?::(?:[0-5]\d|60)(?:[.,]\d+)?)?(?:{_OFFSET}|{_UTC})?"
# What nearly all write, and W3C's logs without an offset: that DuckDB reads as it is.
_USUAL = rf"{_DAY}[T ]{_CLOCK}:[0-5]\d(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)?"
# What some write around a time, blanks and Apache's brackets, or after its offset: Java's zone (RFC 9557), Go's name.
_AROUND = r"^[ \[]+|[ \]]+$"
_AFTER_OFFSET = r"([+-]\d\d:?\d\d)(?: [A-Z]{3,5}|\[[A-Za-z0-9_+/-]+)$|([Zz])\[[A-Za-z0-9_+/-]+$"
#: How a time ends that has its offset.
OFFSET_AT_END = rf"{_CLOCK}(?::\d\d(?:[.,]\d+)?)?(?:{_OFFSET}|{_UTC})(?: ?[A-Z]{{3,5}}|\[[A-Za-z0-9_+/-]+)?[ \]]*$"
# Seconds since 1970 as nearly all lines have them: of the years 2001 to 2286.
_THIS_AGE = r"[1-9]\d{9}(?:\.\d+)?"
_NUMBER = r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*"
# Of an access log: 10/Oct/2000:13:55:36 -0700. DuckDB by itself takes a little more.
_ACCESS_LOG = r"\d\d/[A-Za-z]{3}/\d{4}:\d\d:\d\d:\d\d [+-](?:[01]\d|2[0-3])[0-5]\d"
_ACCESS_LOG_FORMAT = "%d/%b/%Y:%H:%M:%S %z"
# RFC 1123, section 5.2.14, and RFC 5322, section 3.3: Tue, 10 Mar 2026 12:30:00 GMT. The day of the week says nothing
# more; of the zones' names only those that are UTC.
_RFC_1123 = (
    rf"^(?:[A-Za-z]{{3}}, ?)?(\d\d? [A-Za-z]{{3}} \d{{4}} {_CLOCK}(?::(?:[0-5]\d|60))?)"
    r" (GMT|UTC?|Z|[+-](?:[01]\d|2[0-3])[0-5]\d)(?: \([^()]*\))?$"
)
# DuckDB takes February 31 where it is given several formats at a time.
_RFC_1123_FORMATS = ("%d %b %Y %H:%M:%S %z", "%d %b %Y %H:%M %z")

#: How many digits before the point a number of each may have, and how many are meant where others may be: of the years
#: 1973 to 5138.
_EPOCHS = {
    "epoch_seconds": (14, range(0, 11)),
    "epoch_milliseconds": (14, range(11, 14)),
    "epoch_microseconds": (18, range(14, 17)),
    "epoch_nanoseconds": (22, range(17, 22)),
}


def clicked_at(time: str, formats: Sequence[TimeFormat]) -> str:
    """The expression for the text that ``time`` is SQL for, by the first of the formats that reads it.

    What is around it (see ``_AROUND`` and ``_AFTER_OFFSET``) is looked at where it is none by itself. A leap second is
    the one before. Numbers since 1970 are told apart by their size where there are several of these
    formats. A local time that is twice, or never, where clocks change, is none.
    """
    are_several = sum(format_ in _EPOCHS for format_ in formats) > 1
    moments = [_moment(time, format_, are_several) for format_ in formats]
    return moments[0] if len(moments) == 1 else f"coalesce({', '.join(moments)})"


def usual_moment(time: str, formats: Sequence[TimeFormat]) -> str:
    """The same of nearly all texts, null of others: an expression that DuckDB plans in a tenth of the time.

    Each piece of lines is a query, and to plan the whole one takes as long as to read the times of 10,000 lines.
    """
    first = formats[0]
    if first == "iso8601":
        return f"CASE {_usual_iso_8601(time)} END"
    if first == "epoch_seconds":
        return f"CASE WHEN regexp_full_match({time}, '{_THIS_AGE}') THEN {_micros(time, first)} END"
    if first == "access_log":
        return f"CASE {_access_log(time)} END"
    return clicked_at(time, formats)


def read_times(texts: pa.Array, moments: pa.Array, formats: Sequence[TimeFormat]) -> pa.Array:
    """The moments of the texts, of which these are known by ``usual_moment``."""
    unread = pc.and_(pc.is_valid(texts), pc.is_null(moments))
    if not pc.any(unread).as_py():
        return moments
    lines = pa.table({"time": texts.filter(unread)})
    read = run_on_lines(f"SELECT {clicked_at('time', formats)} AS clicked_at FROM lines", lines)
    return pc.replace_with_mask(moments, unread, as_array(read["clicked_at"]))


def _moment(time: str, format_: TimeFormat, are_several: bool) -> str:
    if isinstance(format_, TimePattern):
        return _by_pattern(time, format_)
    if format_ in _EPOCHS:
        return _from_epoch(time, format_, are_several)
    named = {"iso8601": _iso_8601, "rfc1123": _rfc_1123, "access_log": _access_log}[format_]
    alone = f"regexp_replace(regexp_replace({time}, '{_AROUND}', '', 'g'), '{_AFTER_OFFSET}', '\\1\\2')"
    # Not COALESCE: of it DuckDB computes what is in it more than once for all lines.
    return f"CASE {named(time)} ELSE CASE {named(alone)} END END"


def _iso_8601(time: str) -> str:
    """The cases in which it is such a time, each with its moment."""
    clock = f"regexp_replace(upper(replace(replace({time}[12:], ' ', ''), ',', '.')), '{_NAMED_UTC}', 'Z')"
    # Seconds are at 18 and 19 of the text, at 7 and 8 of the clock's.
    whole = f"CASE WHEN {time}[18:19] = '60' THEN {clock}[:6] || '59' || {clock}[9:] ELSE {clock} END"
    moment = f"TRY_CAST({time}[:10] || 'T' || ({whole}) AS TIMESTAMPTZ)"
    return f"{_usual_iso_8601(time)} WHEN regexp_full_match({time}, '{_ISO_8601}') THEN epoch_us({moment})"


def _usual_iso_8601(time: str) -> str:
    return f"WHEN regexp_full_match({time}, '{_USUAL}') THEN epoch_us(TRY_CAST({time} AS TIMESTAMPTZ))"


def _access_log(time: str) -> str:
    moment = f"try_strptime(replace({time}, ':60 ', ':59 '), '{_ACCESS_LOG_FORMAT}')"
    return f"WHEN regexp_full_match({time}, '{_ACCESS_LOG}') THEN epoch_us({moment})"


def _rfc_1123(time: str) -> str:
    clock = rf"regexp_replace(replace({time}, ':60 ', ':59 '), '{_RFC_1123}', '\1 \2')"
    clock = f"regexp_replace({clock}, ' (?:GMT|UTC?|Z)$', ' +0000')"
    moment = ", ".join(f"try_strptime({clock}, '{format_}')" for format_ in _RFC_1123_FORMATS)
    return f"WHEN regexp_matches({time}, '{_RFC_1123}') THEN epoch_us(coalesce({moment}))"


def _from_epoch(time: str, unit: str, are_several: bool) -> str:
    meant, number = _EPOCHS[unit][1], _decimal(time, unit)
    is_meant = f" AND abs({number}) >= 1e{meant.start} AND abs({number}) < 1e{meant.stop}" if are_several else ""
    return f"CASE WHEN regexp_full_match({time}, '{_NUMBER}'){is_meant} THEN {_micros(time, unit)} END"


def _decimal(time: str, unit: str) -> str:
    """The SQL of the number: a double loses microseconds."""
    return f"TRY_CAST({time} AS DECIMAL({_EPOCHS[unit][0] + 6}, 6))"


def _micros(time: str, unit: str) -> str:
    number = _decimal(time, unit)
    micros = {
        "epoch_seconds": f"trunc({number} * 1000000)",
        "epoch_milliseconds": f"trunc({number} * 1000)",
        "epoch_microseconds": f"trunc({number})",
        "epoch_nanoseconds": f"CAST(trunc({number}) AS HUGEINT) // 1000",
    }[unit]
    return f"TRY_CAST({micros} AS BIGINT)"


def _by_pattern(time: str, format_: TimePattern) -> str:
    clock = f"try_strptime({time}, {quoted(format_.pattern)})"
    if "%n" in format_.pattern:  # a cast would round it up, into the next hour too
        clock = f"make_timestamp(epoch_ns(CAST({clock} AS TIMESTAMP_NS)) // 1000)"
    if format_.zone is None:
        return f"epoch_us({clock})"
    clock, zone = f"CAST({clock} AS TIMESTAMP)", quoted(format_.zone)
    # By the offsets of the day before and after, whether another moment has the same local time.
    before, after = (f"timezone({zone}, t {sign} INTERVAL 1 DAY)" for sign in "-+")
    before, after = f"({before} + INTERVAL 1 DAY)", f"({after} - INTERVAL 1 DAY)"
    is_twice = " OR ".join(f"({other} <> l AND timezone({zone}, t + (l - {other})) = l)" for other in (before, after))
    moment = f"CASE WHEN timezone({zone}, t) = l AND NOT ({is_twice}) THEN epoch_us(t) END"
    return f"list_transform([{clock}], lambda l: list_transform([timezone({zone}, l)], lambda t: {moment})[1])[1]"

"""When a click happened, from the text of its time: SQL expressions for DuckDB, microseconds since 1970 or null."""

from __future__ import annotations

from include.sources import Source

#: Microseconds of an hour.
HOUR_MICROS = 3_600_000_000

# RFC 3339, and what of ISO 8601 Java, Python, Go and JavaScript write: minutes only, any number of decimals after a
# point or a comma, an offset of hours, or none, which is UTC. No zone names: what PST is depends on who reads it.
_DAY = r"\d{4}-\d\d-\d\d"
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d"
_OFFSET = r" ?(?:[Zz]|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)"
_ISO_8601 = rf"{_DAY}[Tt ]{_CLOCK}(?::(?:[0-5]\d|60)(?:[.,]\d+)?)?(?:{_OFFSET})?"
# What nearly all write: that DuckDB reads as it is.
_PLAIN = rf"{_DAY}T{_CLOCK}:[0-5]\d(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)"
_NUMBER = r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*"
# Of an access log: 10/Oct/2000:13:55:36 -0700. DuckDB by itself takes a little more.
_ACCESS_LOG = r"\d\d/[A-Za-z]{3}/\d{4}:\d\d:\d\d:\d\d [+-](?:[01]\d|2[0-3])[0-5]\d"
_ACCESS_LOG_FORMAT = "%d/%b/%Y:%H:%M:%S %z"


def clicked_at(time: str, source: Source) -> str:
    """The expression for the text that ``time`` is SQL for, in the source's format. A leap second is the one before."""
    match source.time_format:
        case "iso8601":
            clock = f"upper(replace(replace({time}[12:], ' ', ''), ',', '.'))"
            # Seconds are at 18 and 19 of the text, at 7 and 8 of the clock's.
            whole = f"CASE WHEN {time}[18:19] = '60' THEN {clock}[:6] || '59' || {clock}[9:] ELSE {clock} END"
            moment = f"TRY_CAST({time}[:10] || 'T' || ({whole}) AS TIMESTAMPTZ)"
            return (
                f"epoch_us(CASE WHEN regexp_full_match({time}, '{_PLAIN}') THEN TRY_CAST({time} AS TIMESTAMPTZ) "
                f"WHEN regexp_full_match({time}, '{_ISO_8601}') THEN {moment} END)"
            )
        case "epoch_seconds":
            return _from_epoch(time, 1_000_000)
        case "epoch_milliseconds":
            return _from_epoch(time, 1_000)
        case _:
            moment = f"try_strptime(replace({time}, ':60 ', ':59 '), '{_ACCESS_LOG_FORMAT}')"
            return f"CASE WHEN regexp_full_match({time}, '{_ACCESS_LOG}') THEN epoch_us({moment}) END"


def _from_epoch(time: str, micros: int) -> str:
    # Decimals: a double loses microseconds.
    number = f"TRY_CAST({time} AS DECIMAL(20, 6))"
    return f"CASE WHEN regexp_full_match({time}, '{_NUMBER}') THEN TRY_CAST(trunc({number} * {micros}) AS BIGINT) END"

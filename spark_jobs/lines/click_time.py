"""When a raw line's click happened, read in plain Python: for landing logs by hour, before Spark sees them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson

from include.log_hours import Hour
from include.sources import JsonFields, Source

#: No click is older than the web. Clocks that were never set say 1601, 1900, 1970, 1980 or the year 1.
FIRST_HOUR = Hour.parse("1990-01-01T00")

_ACCESS_LOG_HOUR = re.compile(rb"\[(\d\d/[A-Za-z]{3}/\d{4}:\d\d):(\d\d):\d\d ([+-]\d{4})\]")

#: The click hour of a raw line, or None when the line says none that is plausible.
HourOfLine = Callable[[bytes], Hour | None]


def hour_reader(source: Source, now: datetime) -> HourOfLine:
    """How to read the click hour of this source's lines.

    None for an hour before ``FIRST_HOUR`` or after ``now``, and for a line that is too long for the source.
    """
    fields = source.fields
    last = Hour.containing(now)
    most_bytes = source.max_line_bytes + len(b"\r\n")

    def hour_of(line: bytes) -> Hour | None:
        if len(line) > most_bytes:
            return None
        hour = _hour_of_json_line(line, fields) if fields else _hour_of_access_log_line(line)
        return hour if hour and FIRST_HOUR <= hour <= last else None

    return hour_of


def _hour_of_access_log_line(line: bytes) -> Hour | None:
    match = _ACCESS_LOG_HOUR.search(line)
    return _access_log_hour(*match.groups()) if match else None


@lru_cache(maxsize=4096)
def _access_log_hour(hour: bytes, minute: bytes, offset: bytes) -> Hour | None:
    try:
        moment = datetime.strptime(b" ".join((hour, minute, offset)).decode(), "%d/%b/%Y:%H %M %z")
    except ValueError:
        return None
    return _hour_of(moment)


def _hour_of_json_line(line: bytes, fields: JsonFields) -> Hour | None:
    try:
        value: Any = orjson.loads(line)
        for part in fields.time.split("."):
            value = value[part]
        match fields.time_format:
            case "iso8601":
                moment = datetime.fromisoformat(value.strip())
                moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            case "epoch_seconds":
                moment = datetime.fromtimestamp(float(value), tz=UTC)
            case "epoch_milliseconds":
                moment = datetime.fromtimestamp(float(value) / 1000, tz=UTC)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, OSError):
        return None
    return _hour_of(moment)


def _hour_of(moment: datetime) -> Hour | None:
    try:
        return Hour.containing(moment)
    except OverflowError:  # in UTC before the year 1, or after 9999
        return None

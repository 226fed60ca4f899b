"""Lines that are to be quarantined, one kind of damage at a time, each made from a fine line."""

from __future__ import annotations

from collections.abc import Callable

import orjson

MAX_LINE_BYTES = 65536

#: Makes a malformed line of a fine one; the number picks among forms of the same damage. Bytes that are not
#: UTF-8 are written as ``surrogateescape`` has them.
Damage = Callable[[str, int], str]

_NOT_UTF8 = (b"\xff\xfe", b"M\xfcnchen", b"\xc3(", b"\xed\xa0\x80", b"\xc0\xaf")
_GARBAGE = ("GET /index.html HTTP/1.1", "<html><body>502</body></html>", "Segmentation fault", "}{")
_BAD_TIMES = ("yesterday at noon", "2026-13-45T25:61:61.000Z", "01/Mar/2026:00:00:01 +0000", "T")


def _without(field: str) -> Damage:
    def damage(line: str, number: int) -> str:
        record = orjson.loads(line)
        del record[field]
        return orjson.dumps(record).decode()

    return damage


def _with(field: str, *values: str | None) -> Damage:
    def damage(line: str, number: int) -> str:
        return orjson.dumps({**orjson.loads(line), field: values[number % len(values)]}).decode()

    return damage


def _truncated(line: str, number: int) -> str:
    return line[: 20 + number * 37 % (len(line) - 40)]


def _not_utf8(line: str, number: int) -> str:
    damaged = _NOT_UTF8[number % len(_NOT_UTF8)].decode("utf-8", "surrogateescape")
    return line.replace('"user_agent":"', f'"user_agent":"{damaged}', 1)


#: Reason and damage, in the order in which a sample takes turns with them.
DAMAGES: tuple[tuple[str, Damage], ...] = (
    ("not_json", _truncated),
    ("not_utf8", _not_utf8),
    ("blank", lambda line, number: ""),
    ("missing_event_id", _without("event_id")),
    ("missing_time", _without("ts")),
    ("bad_time", _with("ts", *_BAD_TIMES)),
    ("time_out_of_range", _with("ts", "1970-01-01T00:00:00.000Z")),
    ("missing_url", _without("url")),
    ("bad_url", _with("url", "not a url")),
    ("not_json", lambda line, number: _GARBAGE[number % len(_GARBAGE)]),
    ("missing_event_id", _with("event_id", None)),
    ("missing_time", _with("ts", None)),
    ("missing_url", _with("url", None)),
    ("bad_url", _with("url", "javascript:alert(1)")),
    ("not_json", lambda line, number: f"[{line}]"),
    ("blank", lambda line, number: " " * (1 + number % 8)),
    ("missing_event_id", _with("event_id", "")),
    ("missing_time", _with("ts", "")),
    ("missing_url", _with("url", "")),
    ("time_out_of_range", _with("ts", "2100-01-01T00:00:00.000Z")),
    ("bad_url", _with("url", "ftp://x/y")),
    ("not_json", lambda line, number: str(42 + number)),
)


def rename_url(line: str) -> str:
    """A fine line as a front end writes it whose new release calls the field ``url`` otherwise."""
    return line.replace('"url":', '"page_url":', 1)


def make_line_too_long(line: str) -> str:
    """A fine line whose referrer makes it longer than any source takes: well over ``MAX_LINE_BYTES``."""
    return orjson.dumps({**orjson.loads(line), "referrer": "https://www.example.org/" + "x" * MAX_LINE_BYTES}).decode()

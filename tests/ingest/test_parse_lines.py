"""Each line becomes a well-formed click or a reason for quarantine, never nothing."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.log_hours import Hour
from include.sources import JsonFields, Source
from include.tables import QUARANTINE_REASONS
from spark_jobs.ingest.parse_lines import PARSED, parse_lines
from tests.ingest.lines import TRACKING, lines_table

FIELDS = {"event_id": "event_id", "time": "ts", "url": "url", "country": "geo.country", "visitor": "visitor_id",
          "referrer": "referrer", "user_agent": "user_agent", "status": "status"}  # fmt: skip
WEB = Source(name="web", format="json", fields=JsonFields(**FIELDS))
ACCESS = Source(name="access", format="combined", base_url="http://www.test")
COMMON = Source(name="access", format="common", base_url="http://www.test")
NOON = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
ISO = "2026-03-01T12:30:00Z"


def parse(raw: list[bytes], source: Source = WEB, first_line: int = 2) -> list[dict[str, Any]]:
    """What parse_lines makes of lines of the log hour 2026-03-01T12, in their order."""
    found = parse_lines(lines_table(raw, first_line), source, TRACKING)
    assert found.schema == PARSED
    assert found["row_id"].to_pylist() == list(range(len(raw)))
    return found.to_pylist()


def line(**fields: Any) -> bytes:
    """A JSON line; a field given as None is left out."""
    record = {"event_id": "e", "ts": ISO, "url": "http://shop.test/"} | fields
    return json.dumps({name: value for name, value in record.items() if value is not None}).encode()


def with_value(value: bytes) -> bytes:
    """A JSON line with a value in it that nobody maps, as it is."""
    return line()[:-1] + b', "other": ' + value + b"}"


JSON_LINES: dict[str, tuple[bytes, str | None]] = {
    "fine": (line(), None),
    "spaces around": (b"  " + line() + b"\t ", None),
    "line feed": (line() + b"\n", None),
    "carriage return": (line() + b"\r\n", None),
    "fields nobody maps": (line(other={"a": [1, {"b": None}]}, more="x" * 999), None),
    "escapes": (line(url='http://shop.test/\u00e9"\\'), None),
    "escaped names": (line().replace(b'"url"', rb'"u\u0072l"'), None),
    "what looks like no JSON inside a text": (line(other=[",}", "x,\t]", ":NaN", "[Infinity", ',"nan"']), None),
    "deep": (with_value(b"[" * 5000 + b"]" * 5000), None),
    "deep with what looks like no JSON in a text": (with_value(b'[",]",' + b"[" * 5000 + b"]" * 5001), None),
    "a number of thousands of digits": (with_value(b"9" * 10_000), None),
    "text in place of an object": (line(geo="DE"), None),
    "a list in place of an object": (line(geo=[{"country": "DE"}]), None),
    "too long": (line(pad="x" * 70_000), "line_too_long"),
    "too long in bytes, not in characters": (line().replace(b"shop", "é".encode() * 33_000), "line_too_long"),
    "too long and not UTF-8": (b"\xff" * 70_000, "line_too_long"),
    "not UTF-8": (line().replace(b"shop", b"sh\xf6p"), "not_utf8"),
    "a lone surrogate's bytes": (line().replace(b"shop", b"\xed\xa0\x80"), "not_utf8"),
    "overlong UTF-8": (line().replace(b"shop", b"\xc0\xaf"), "not_utf8"),
    "nothing": (b"", "blank"),
    "white space": (b"  \t ", "blank"),
    "only a carriage return": (b"\r\n", "blank"),
    "only a line feed": (b"\n", "blank"),
    "no JSON": (b"GET / HTTP/1.1", "not_json"),
    "a zero": (b"\0", "not_json"),
    "a space of Unicode": ("\u00a0".encode(), "not_json"),
    "cut off": (line()[:-5], "not_json"),
    "a list": (b"[" + line() + b"]", "not_json"),
    "a number": (b"17", "not_json"),
    "a text": (b'"{}"', "not_json"),
    "two objects": (line() + line(), "not_json"),
    "two objects with a space between": (line() + b" " + line(), "not_json"),
    "two objects and more": (line() + b" " + line() + b"x", "not_json"),
    "two objects with a comma between": (line() + b"," + line(), "not_json"),
    "garbage after": (line() + b" garbage", "not_json"),
    "garbage after that ends like an object": (line() + b" garbage }", "not_json"),
    "a closing bracket too many": (line() + b"}", "not_json"),
    "a zero after": (line() + b"\0", "not_json"),
    "a vertical tab after": (line() + b"\v", "not_json"),
    "a byte order mark inside a file": (b"\xef\xbb\xbf" + line(), "not_json"),
    "a comma at the end": (line()[:-1] + b",}", "not_json"),
    "a comma at the end of a list": (with_value(b"[1 ,\t]"), "not_json"),
    "no number": (with_value(b"NaN"), "not_json"),
    "no number in a list": (with_value(b"[1, -Infinity]"), "not_json"),
    "infinity in small letters": (with_value(b"[inf]"), "not_json"),
    "a comment": (with_value(b"/**/1"), "not_json"),
    "single quotes": (with_value(b"'x'"), "not_json"),
    "a control character in a text": (with_value(b'"\x01"'), "not_json"),
    "a line feed in a text": (with_value(b'"a\nb"'), "not_json"),
    "an escape that is none": (with_value(rb'"\x41"'), "not_json"),
    # As text they would have to be something else: two ids would become one, a URL another.
    "a lone surrogate": (line(url="http://shop.test/a\ud800b=1"), "not_json"),
    "a lone low surrogate": (line(event_id="\udc00"), "not_json"),
    "a lone surrogate in a field nobody maps": (line(other=["\ud83d"]), "not_json"),
    "a lone surrogate in a name": (line(other={"\ud83d": 1}), "not_json"),
    "a lone surrogate beside what looks like no JSON": (line(other=[",]", "\ud83d"]), "not_json"),
    "a pair of surrogates": (line(event_id="\U0001f600"), None),
    "without event id": (line(event_id=None), "missing_event_id"),
    "empty event id": (line(event_id=" "), "missing_event_id"),
    "null event id before another": (b'{"event_id": null, ' + line()[1:], "missing_event_id"),
    "event id in capitals": (line().replace(b"event_id", b"EVENT_ID"), "missing_event_id"),
    "without anything": (b"{}", "missing_event_id"),
    "without time": (line(ts=None), "missing_time"),
    "empty time": (line(ts=""), "missing_time"),
    "time that is none": (line(ts="yesterday at noon"), "bad_time"),
    "only a year": (line(ts="2026"), "bad_time"),
    "only a day": (line(ts="2026-03-01"), "bad_time"),
    "only a time of day": (line(ts="12:30:00"), "bad_time"),
    "thirteenth month": (line(ts="2026-13-01T12:30:00Z"), "bad_time"),
    "29 February": (line(ts="2026-02-29T12:30:00Z"), "bad_time"),
    "hour 24": (line(ts="2026-03-01T24:00:00Z"), "bad_time"),
    "minute 60": (line(ts="2026-03-01T12:60:00Z"), "bad_time"),
    "second 61": (line(ts="2026-03-01T12:30:61Z"), "bad_time"),
    "a zone's short name": (line(ts="2026-03-01T12:30:00 PST"), "bad_time"),
    "UTC by name": (line(ts="2026-03-01T12:30:00 UTC"), "bad_time"),
    "a zone's name": (line(ts="2026-03-01T12:30:00 Europe/Berlin"), "bad_time"),
    "a zone's name in brackets": (line(ts="2026-03-01T12:30:00+01:00[Europe/Paris]"), "bad_time"),
    "an offset of days": (line(ts="2026-03-01T12:30:00+24:00"), "bad_time"),
    "a week": (line(ts="2026-W09-7T12:30:00Z"), "bad_time"),
    "a time with a line feed": (line(ts=ISO + "\n"), "bad_time"),
    "digits of other scripts": (line(ts="\uff12\uff10\uff12\uff16-03-01T12:30:00Z"), "bad_time"),
    "time that is an object": (line(ts={"at": ISO}), "bad_time"),
    "time that is a number": (line(ts=1772368200), "bad_time"),
    "168 h before": (line(ts="2026-02-22T12:00:00Z"), None),
    "more than 168 h before": (line(ts="2026-02-22T11:59:59.999999Z"), "time_out_of_range"),
    "9 min after": (line(ts="2026-03-01T13:09:59.999999Z"), None),
    "9 min after, and less than a microsecond": (line(ts="2026-03-01T13:09:59.9999999Z"), None),
    "10 min after": (line(ts="2026-03-01T13:10:00Z"), "time_out_of_range"),
    "year 1": (line(ts="0001-01-01T00:00:00Z"), "time_out_of_range"),
    "1970": (line(ts="1970-01-01T00:00:00Z"), "time_out_of_range"),
    "2100": (line(ts="2100-01-01T00:00:00Z"), "time_out_of_range"),
    "year 9999": (line(ts="9999-12-31T23:59:59.999999-23:59"), "time_out_of_range"),
    "without URL": (line(url=None), "missing_url"),
    "empty URL": (line(url="  "), "missing_url"),
    "a path": (line(url="/cart"), "bad_url"),
    "another scheme": (line(url="ftp://shop.test/"), "bad_url"),
    "javascript": (line(url="javascript:alert(1)"), "bad_url"),
    "no host": (line(url="http://"), "bad_url"),
    "a port and no host": (line(url="http://:80/"), "bad_url"),
    "the other port and no host": (line(url="https://:443/x"), "bad_url"),
    "another port and no host": (line(url="http://:8080/x"), "bad_url"),
    "a user and no host": (line(url="http://user@/x"), "bad_url"),
    "nobody and no host": (line(url="http://@/"), "bad_url"),
    "a space in the host": (line(url="http://shop test/"), "bad_url"),
    "a port that is none": (line(url="http://shop.test:99999/"), "bad_url"),
    # As a browser opens it.
    "more slashes": (line(url="http:///cart"), None),
    "a space in the URL": (line(url="http://shop.test/a b"), None),
    "a line end in the URL": (line(url="http://shop.test/a\n"), None),
    "a tab in the URL": (line(url="http://shop\t.test/a"), None),
    "spaces around the URL": (line(url="  http://shop.test/ "), None),
    "a space in a URL that is not in normal form": (line(url="HTTP://shop.test/a b"), None),
    "an object as URL": (line(url={"href": "http://shop.test/"}), "bad_url"),
}


def test_reason_of_every_json_line() -> None:
    rows = parse([raw for raw, _ in JSON_LINES.values()])
    found = {name: row["reason"] for name, row in zip(JSON_LINES, rows, strict=True)}
    assert found == {name: reason for name, (_, reason) in JSON_LINES.items()}
    assert {reason for reason in found.values() if reason} == QUARANTINE_REASONS.keys() - {"not_access_log"}
    of_clicks = ("clicked_at", "url", "event_id", "country_code", "visitor_id", "referrer", "user_agent", "status")
    for row in rows:
        assert (row["raw"] is None) == (row["reason"] is None)
        assert (row["url"] is None) == (row["clicked_at"] is None) == (row["reason"] is not None)
        assert row["reason"] is None or all(row[name] is None for name in of_clicks)
    raw_of = dict(zip(JSON_LINES, (row["raw"] for row in rows), strict=True))
    assert raw_of["no JSON"] == "GET / HTTP/1.1"
    assert raw_of["only a carriage return"] == ""
    assert raw_of["not UTF-8"] == line().decode().replace("shop", "sh\ufffdp")
    assert len(raw_of["too long"]) == len(raw_of["too long and not UTF-8"]) == 8192
    assert raw_of["two objects"] == 2 * line().decode()


def test_no_lines_are_no_rows() -> None:
    for source in (WEB, ACCESS, COMMON):
        assert parse([], source) == []


def test_place_of_each_line_stays() -> None:
    table = lines_table([line() + b"\r\n", b"x\n"], first_line=41, hour=Hour.parse("2026-02-28T23"), file="b\n.log")
    rows = parse_lines(table, WEB, ()).to_pylist()
    assert [(row["log_date"], row["log_hour"], row["file"]) for row in rows] == [(date(2026, 2, 28), 23, "b\n.log")] * 2
    assert [(row["line"], row["bytes"]) for row in rows] == [(41, len(line())), (42, 1)]


def test_fields_of_json_lines() -> None:
    rows = parse(
        [
            line(geo={"country": " de "}, visitor_id="v", user_agent="curl/8", status=200, event_id=17, referrer="r")
            + b"\r",
            line(geo={"country": "Germany"}, status="204", visitor_id=""),
            line(geo={"country": None}, status="ok", ts="2026-03-01 13:30:00.25+01:00"),
            line(geo={"country": "UK"}, ts="2026-03-01t12:30:00z", url="HTTP://Shop.Test:80?utm_source=x#top"),
            line(ts="2026-03-01T12:30"),
        ],
    )
    assert [row["reason"] for row in rows] == [None] * 5
    assert [row["country_code"] for row in rows] == ["DE", *["unknown"] * 4]
    assert [row["status"] for row in rows] == [200, 204, None, None, None]
    assert [row["visitor_id"] for row in rows] == ["v", None, None, None, None]
    assert (rows[0]["event_id"], rows[0]["user_agent"], rows[0]["referrer"]) == ("17", "curl/8", "r")
    assert rows[3]["url"] == "http://shop.test/"
    clicked_at = [row["clicked_at"] for row in rows]
    assert clicked_at == [NOON, NOON, NOON.replace(microsecond=250_000), NOON, NOON]


#: What JSON says, and the text that it is; a text is kept to the letter.
EVENT_IDS: dict[str, str] = {
    '" a "': " a ",
    r'"\t"': "\t",
    r'"\u0000"': "\0",
    r'"\u3000"': "\u3000",
    r'"\ud83d\ude00"': "\U0001f600",
    r'"a\"\\\/\u00e9"': 'a"\\/é',
    "17": "17",
    "12345678901234567890123": "12345678901234567890123",
    "true": "true",
    '{"a" : [1, "x\\n"]}': '{"a":[1,"x\\n"]}',
    # Of a name that comes twice the first counts.
    '"first", "event_id": "second"': "first",
}


def test_texts_are_kept_as_they_are() -> None:
    rows = parse([line(event_id="?").replace(b'"?"', text.encode()) for text in EVENT_IDS])
    assert [row["reason"] for row in rows] == [None] * len(EVENT_IDS)
    assert [row["event_id"] for row in rows] == list(EVENT_IDS.values())


COUNTRIES = {
    "DE": "DE", "de": "DE", " fR ": "FR", "ß": "unknown", "\u0131t": "unknown", "\ufb01": "unknown",
    "DE\u200b": "unknown", "\uff24\uff25": "unknown", "UK": "unknown", "XX": "unknown", "DEU": "unknown",
    "D": "unknown", "d e": "unknown", "": "unknown", "unknown": "unknown",
}  # fmt: skip


def test_country_is_a_code_of_two_ascii_letters_or_unknown() -> None:
    rows = parse([line(geo={"country": country}) for country in COUNTRIES])
    assert {name: row["country_code"] for name, row in zip(COUNTRIES, rows, strict=True)} == COUNTRIES


STATUSES: dict[Any, int | None] = {
    200: 200, "404": 404, " 200 ": 200, "ok": None, "": None, 99999999999: None, "2_00": None, "٢٠٠": None,
    "9" * 5000: None, -1: -1, 2**31: None, -(2**31): -(2**31),
}  # fmt: skip


def test_status_is_a_number_or_null() -> None:
    rows = parse([line(status=status) for status in STATUSES])
    assert [row["reason"] for row in rows] == [None] * len(STATUSES)
    assert {name: row["status"] for name, row in zip(STATUSES, rows, strict=True)} == STATUSES


_HALF_PAST = int(NOON.timestamp()) * 1_000_000
#: Texts of times and the microseconds after 12:30:00 that they mean.
TIMES: dict[str, int] = {
    "2026-03-01T12:30:00Z": 0,
    "2026-03-01T12:30:00.1Z": 100_000,
    "2026-03-01T12:30:00,25Z": 250_000,
    "2026-03-01 12:30:00,25": 250_000,
    "2026-03-01T12:30:00.000001Z": 1,
    "2026-03-01T12:30:00.123456789Z": 123_456,
    "2026-03-01T12:30:00.999999999999+00:00": 999_999,
    "2026-03-01T12:30Z": 0,
    "2026-03-01T12:30": 0,
    "2026-03-01 12:30": 0,
    "2026-03-01T13:30+01:00": 0,
    "2026-03-01T13:30+0100": 0,
    "2026-03-01T13:30+01": 0,
    "2026-03-01T05:00:00-07:30": 0,
    "2026-03-01T05:00:00.5-0730": 500_000,
    "2026-03-01T12:30:00-00:00": 0,
    "2026-03-01 12:30:00 +00:00": 0,
    "2026-03-01 12:30:00 Z": 0,
    "2026-03-02T02:29:00+13:59": 0,
    "2026-02-28T14:30:00-22:00": 0,
    "2026-03-02T12:29:00+23:59": 0,
    "2026-03-01t12:30:00z": 0,
    # A leap second is the second before.
    "2026-03-01T12:29:60Z": -1_000_000,
    "2026-03-01T12:29:60.5Z": -500_000,
    "2026-03-01T13:29:60,5+01:00": -500_000,
    "2026-03-01T12:29:60": -1_000_000,
}


def test_times_as_programs_write_them() -> None:
    rows = parse([line(ts=text) for text in TIMES])
    assert [row["reason"] for row in rows] == [None] * len(TIMES)
    micros = {text: _micros(row["clicked_at"]) - _HALF_PAST for text, row in zip(TIMES, rows, strict=True)}
    assert micros == TIMES


def _micros(moment: datetime) -> int:
    seconds = (moment.replace(microsecond=0) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
    return int(seconds) * 1_000_000 + moment.microsecond


@pytest.mark.parametrize(
    ("time_format", "time"),
    [
        ("epoch_seconds", int(NOON.timestamp())),
        ("epoch_seconds", f"{int(NOON.timestamp())}.000000"),
        ("epoch_seconds", f" +{int(NOON.timestamp())}. "),
        ("epoch_seconds", "1.7723682e9"),
        ("epoch_milliseconds", int(NOON.timestamp()) * 1000),
        ("epoch_milliseconds", "17723682E5"),
    ],
)
def test_renamed_and_nested_fields(time_format: Any, time: Any) -> None:
    fields = JsonFields(time="meta.at-time", url="page.address", time_format=time_format, event_id="meta.id")
    source = Source(name="other", format="json", fields=fields)
    texts = [
        {"meta": {"at-time": time, "id": "x"}, "page": {"address": "http://shop.test/p"}},
        {"meta": {"at-time": "noon", "id": "x"}, "page": {"address": "http://shop.test/p"}},
        {"meta": {"at-time": time, "id": "x"}, "page": "http://shop.test/p"},
    ]
    rows = parse([json.dumps(text).encode() for text in texts], source)
    assert [row["reason"] for row in rows] == [None, "bad_time", "missing_url"]
    assert (rows[0]["url"], rows[0]["event_id"], rows[0]["country_code"]) == ("http://shop.test/p", "x", None)
    assert rows[0]["clicked_at"] == NOON


@pytest.mark.parametrize("time_format", ["epoch_seconds", "epoch_milliseconds"])
def test_numbers_of_any_size_are_times_or_bad_ones(time_format: Any) -> None:
    source = Source(name="o", format="json", fields=JsonFields(time="ts", url="url", time_format=time_format))
    texts = ["1e18", "-1e18", "9" * 400, "1e400", "1e-400", "0." + "0" * 99 + "1", "NaN", "inf", "1_0", "0x1", "", "e",
             "1e", ".", "--1", "1 2", "1e99999999999", ISO, "٣"]  # fmt: skip
    found = {text: row["reason"] for text, row in zip(texts, parse([line(ts=t) for t in texts], source), strict=True)}
    assert found.pop("") == "missing_time"
    assert set(found.values()) == {"bad_time", "time_out_of_range"}
    assert {found[text] for text in ("NaN", "inf", "1_0", "0x1", "e", "1e", ".", "--1", "1 2", ISO, "٣")} == {
        "bad_time"
    }


@pytest.mark.parametrize(
    ("fields", "record"),
    [
        ({"url": "u", "referrer": "U"}, {"u": "http://shop.test/", "U": "r"}),
        ({"url": "page.url", "referrer": "Page.url"}, {"page": {"url": "http://shop.test/"}, "Page": {"url": "r"}}),
        ({"url": 'u"r\\l', "referrer": "r'"}, {'u"r\\l': "http://shop.test/", "r'": "r"}),
        ({"url": "$", "referrer": "*"}, {"$": "http://shop.test/", "*": "r"}),
        ({"url": "ürl", "referrer": "Ürl"}, {"ürl": "http://shop.test/", "Ürl": "r"}),
        ({"url": "text", "referrer": "object"}, {"text": "http://shop.test/", "object": "r"}),
    ],
    ids=lambda value: ",".join(value),
)
def test_fields_of_any_name(fields: dict[str, str], record: dict[str, Any]) -> None:
    source = Source(name="o", format="json", fields=JsonFields(time="ts", **fields))
    (row,) = parse([json.dumps({"ts": ISO} | record).encode()], source)
    assert (row["reason"], row["url"], row["referrer"]) == (None, "http://shop.test/", "r")


def test_the_longest_lines_that_a_source_may_have_are_read() -> None:
    source = WEB.model_copy(update={"max_line_bytes": 300})
    longest = line(pad="x" * (300 - len(line(pad=""))))
    rows = parse([longest, longest + b"\r\n", longest + b" "], source)
    assert [row["reason"] for row in rows] == [None, None, "line_too_long"]


def test_only_some_lines_are_looked_at_for_their_fields() -> None:
    raw = [line() if n % 2 else b"[]" for n in range(1, 402)]
    assert [row["line"] for row in parse(raw, first_line=1) if row["sampled"]] == [*range(1, 101, 2)]
    rows = parse([line(n=n) for n in range(1, 402)], first_line=1)
    sampled = {row["line"]: row["sampled"] for row in rows if row["sampled"]}
    assert list(sampled) == [*range(1, 101), 200, 300, 400]
    assert sampled[300] == line(n=300).decode()
    assert parse([b"{}"], first_line=1)[0]["sampled"] == "{}", "quarantined, and an object"
    assert all(row["sampled"] is None for row in parse([log_line(rest=REST)], ACCESS, first_line=1))


def log_line(
    request: str = "GET /a HTTP/1.1", time: str = "01/Mar/2026:12:30:00 +0000", status: str = "200", rest: str = ""
) -> bytes:
    return f'198.51.100.7 - frank [{time}] "{request}" {status} 2326{rest}'.encode()


REST = ' "http://from.test/" "curl/8"'
LOG_LINES: dict[str, tuple[bytes, str | None, str | None]] = {
    "fine": (log_line(rest=REST), None, "http://www.test/a"),
    "line feed": (log_line(rest=REST) + b"\n", None, "http://www.test/a"),
    "carriage return": (log_line(rest=REST) + b"\r\n", None, "http://www.test/a"),
    "more at the end": (log_line(rest=REST + ' "1.2.3.4" 17'), None, "http://www.test/a"),
    "other line ends at the end": (log_line(rest=REST + ' "a\u2028b\u2029c\x85d" 17'), None, "http://www.test/a"),
    "absolute target": (log_line("GET http://Other.test/x HTTP/1.1", rest=REST), None, "http://other.test/x"),
    "absolute target without a host": (log_line("GET http://:80/ HTTP/1.1", rest=REST), "bad_url", None),
    "HTTP/0.9": (log_line("GET /a", rest=REST), None, "http://www.test/a"),
    "HTTP/2": (log_line("GET /a HTTP/2", rest=REST), None, "http://www.test/a"),
    "a method with a dash": (log_line("M-SEARCH /a HTTP/1.1", rest=REST), None, "http://www.test/a"),
    "a method of WebDAV": (log_line("PROPFIND /a HTTP/1.1", rest=REST), None, "http://www.test/a"),
    "a method that none has": (log_line("x!#$%&'*+.^_`|~9 /a HTTP/1.1", rest=REST), None, "http://www.test/a"),
    "query": (log_line("GET /a?utm_source=1&b=2 HTTP/1.1", rest=REST), None, "http://www.test/a?b=2"),
    "spaces in the path": (log_line("GET /a b c HTTP/1.1", rest=REST), None, "http://www.test/a%20b%20c"),
    "two slashes": (log_line("GET //b/c HTTP/1.1", rest=REST), None, "http://www.test//b/c"),
    "dots": (log_line("GET /a/../../b/./c HTTP/1.1", rest=REST), None, "http://www.test/b/c"),
    "escaped quotes": (log_line(rest=' "-" "a \\"quoted\\" agent \\\\"'), None, "http://www.test/a"),
    "escaped quote in the path": (log_line('GET /a\\"b HTTP/1.1', rest=REST), None, "http://www.test/a%22b"),
    "escaped bytes in the path": (log_line(r"GET /\xC3\xa9\t\\ HTTP/1.1", rest=REST), None, "http://www.test/%C3%A9%09%5C"),
    "a control character in the path": (log_line("GET /a\x01b HTTP/1.1", rest=REST), None, "http://www.test/a%01b"),
    "a control character in the method": (log_line("G\x01T /a HTTP/1.1", rest=REST), "missing_url", None),
    "control characters all over": (
        log_line("GET /a HTTP/1.1", rest=' "f\x01r" "a\x01\x02b"').replace(b"frank", b"fr\x01nk"), None,
        "http://www.test/a"),
    "dashes": (log_line(rest=' "-" "-"').replace(b"2326", b"-"), None, "http://www.test/a"),
    "offset": (log_line(time="01/Mar/2026:05:30:00 -0700", rest=REST), None, "http://www.test/a"),
    "leap second": (log_line(time="01/Mar/2026:12:29:60 +0000", rest=REST), None, "http://www.test/a"),
    "missing closing quote": (log_line(rest=' "http://from.test/" "curl/8'), "not_access_log", None),
    "no agent": (log_line(rest=' "http://from.test/"'), "not_access_log", None),
    "no time": (b'198.51.100.7 - - "GET /a HTTP/1.1" 200 1 "-" "-"', "not_access_log", None),
    "status that is none": (log_line(status="OK", rest=REST), "not_access_log", None),
    "JSON": (line(), "not_access_log", None),
    "blank": (b"  ", "blank", None),
    "month that is none": (log_line(time="01/Foo/2026:12:30:00 +0000", rest=REST), "bad_time", None),
    "31 February": (log_line(time="31/Feb/2026:12:30:00 +0000", rest=REST), "bad_time", None),
    "time without an offset": (log_line(time="01/Mar/2026:12:30:00", rest=REST), "bad_time", None),
    "time with a zone's name": (log_line(time="01/Mar/2026:12:30:00 PST", rest=REST), "bad_time", None),
    "time with an offset of days": (log_line(time="01/Mar/2026:12:30:00 +9999", rest=REST), "bad_time", None),
    "time with an offset of 60 minutes": (log_line(time="01/Mar/2026:12:30:00 +0060", rest=REST), "bad_time", None),
    "tomorrow": (log_line(time="02/Mar/2026:12:30:00 +0000", rest=REST), "time_out_of_range", None),
    "bytes of a handshake": (log_line("\\x16\\x03\\x01", rest=REST), "missing_url", None),
    "request is a dash": (log_line("-", rest=REST), "missing_url", None),
    "empty request": (log_line("", rest=REST), "missing_url", None),
    "asterisk": (log_line("OPTIONS * HTTP/1.0", rest=REST), "bad_url", None),
    "host and port": (log_line("CONNECT shop.test:443 HTTP/1.1", rest=REST), "bad_url", None),
    "not UTF-8": (log_line(rest=REST).replace(b"curl", b"c\xfcrl"), "not_utf8", None),
}  # fmt: skip


def test_reason_and_url_of_every_combined_line() -> None:
    rows = parse([raw for raw, _, _ in LOG_LINES.values()], ACCESS)
    found = {name: (row["reason"], row["url"]) for name, row in zip(LOG_LINES, rows, strict=True)}
    assert found == {name: (reason, url) for name, (_, reason, url) in LOG_LINES.items()}
    by_name = dict(zip(LOG_LINES, rows, strict=True))
    assert by_name["offset"]["clicked_at"] == NOON
    assert by_name["leap second"]["clicked_at"] == NOON.replace(minute=29, second=59)
    dashes = by_name["dashes"]
    assert (dashes["referrer"], dashes["user_agent"]) == (None, None)
    assert by_name["escaped quotes"]["user_agent"] == r"a \"quoted\" agent \\"
    assert all(row["country_code"] is None and row["event_id"] is None for row in rows)


@pytest.mark.parametrize("name", ["fine", "other line ends at the end", "a control character in the path", "HTTP/0.9"])
def test_nothing_in_a_line_shifts_its_fields(name: str) -> None:
    (row,) = parse([LOG_LINES[name][0]], ACCESS)
    found = (row["client_address"], row["referrer"], row["user_agent"], row["status"], row["clicked_at"])
    assert found == ("198.51.100.7", "http://from.test/", "curl/8", 200, NOON)


def test_control_characters_stay_in_their_fields() -> None:
    (row,) = parse([LOG_LINES["control characters all over"][0]], ACCESS)
    assert (row["referrer"], row["user_agent"], row["status"]) == ("f\x01r", "a\x01\x02b", 200)


def test_common_lines_have_no_referrer() -> None:
    rows = parse([log_line(), log_line(rest=REST), log_line() + b"\r\n", log_line()[:40]], COMMON)
    assert [row["reason"] for row in rows] == [None, None, None, "not_access_log"]
    assert [(row["url"], row["referrer"], row["status"]) for row in rows[:3]] == [("http://www.test/a", None, 200)] * 3


def _any_line(rng: random.Random) -> bytes:
    match rng.randrange(5):
        case 0:
            return rng.randbytes(rng.randrange(80))
        case 1 | 2:
            raw = bytearray(rng.choice([line(event_id=str(rng.random())), log_line(rest=REST)]))
            raw[rng.randrange(len(raw))] = rng.choice(b'"{}\\:,[]- \x00\x01\xff')
            return bytes(raw)
        case 3:
            return line()[: rng.randrange(120)]
        case _:
            return line(ts=rng.choice([ISO, 17, True, [], {}, "1e9"]), url=rng.choice(["http://a", 1, [], {}, ""]))


@pytest.mark.parametrize("source", [WEB, ACCESS, COMMON], ids=lambda source: source.format)
def test_no_line_vanishes_whatever_it_holds(source: Source) -> None:
    rng = random.Random(5)
    raw = [_any_line(rng) for _ in range(5000)]
    rows = parse(raw, source)
    reasons = Counter(row["reason"] for row in rows)
    assert reasons[None] > 100
    assert reasons.keys() - {None} <= QUARANTINE_REASONS.keys()
    for row in rows:
        if row["reason"] is None:
            assert row["clicked_at"] is not None
            assert row["url"].startswith(("http://", "https://"))
    # Neither the lines' order nor how they are split into tables changes what each is.
    table = lines_table(raw)
    order = rng.sample(range(len(raw)), len(raw))
    shuffled = parse_lines(table.take(order), source, TRACKING).sort_by("row_id")
    assert shuffled.to_pylist() == rows
    cuts = [0, *sorted(rng.sample(range(len(raw)), 20)), len(raw)]
    pieces = [table.slice(start, end - start) for start, end in pairwise(cuts)]
    assert pa.concat_tables(parse_lines(piece, source, TRACKING) for piece in pieces).to_pylist() == rows
    assert parse_lines(pa.concat_tables(pieces), source, TRACKING).to_pylist() == rows, "a table of several chunks"


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.binary(max_size=60) | st.text().map(str.encode), max_size=20), st.sampled_from([WEB, ACCESS, COMMON])
)
def test_any_bytes_are_a_line(raw: list[bytes], source: Source) -> None:
    for row in parse(raw, source):
        assert row["reason"] is None or row["reason"] in QUARANTINE_REASONS
        assert (row["raw"] is None) == (row["reason"] is None)


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from([ISO, "http://a.test/"]),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=4), inside, max_size=3),
    max_leaves=6,
)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(["event_id", "ts", "url", "geo", "status"], _values))))
def test_values_of_any_type_are_a_click_or_a_reason(records: list[dict[str, Any]]) -> None:
    for record, row in zip(records, parse([json.dumps(record).encode() for record in records]), strict=True):
        assert row["reason"] is None or row["reason"] in QUARANTINE_REASONS
        if isinstance(event_id := record.get("event_id"), str) and row["reason"] is None:
            assert row["event_id"] == event_id

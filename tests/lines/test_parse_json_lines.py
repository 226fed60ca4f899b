"""Each JSON line becomes a well-formed click or a reason for quarantine."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from include.source_fields import LineFields
from include.sources import Source
from include.tables import QUARANTINE_REASONS
from spark_jobs.lines.delimited_lines import FAULTS
from tests.lines.parsing import FIELDS, ISO, NOON, PREFIXES, WEB, line, parse, with_value

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
    "an escape that is none": (with_value(rb'"\q41"'), "not_json"),
    "half of nginx's escape": (with_value(rb'"\x4"'), "not_json"),
    # As text they would have to be something else: two ids would become one, a URL another.
    "a lone surrogate": (line(url="http://shop.test/a\ud800b=1"), "not_json"),
    "a lone low surrogate": (line(event_id="\udc00"), "not_json"),
    "a lone surrogate in a field nobody maps": (line(other=["\ud83d"]), None),
    "a lone surrogate in a name": (line(other={"\ud83d": 1}), None),
    "a lone surrogate beside what looks like no JSON": (line(other=[",]", "\ud83d"]), None),
    "a lone surrogate beside a comma too many": (line(other=["\ud83d"])[:-1] + b",}", "not_json"),
    "two halves the wrong way round": (line(other="\ude00\ud83d"), None),
    "half a pair before a whole one": (line(other="\ud83d\ud83d\ude00"), None),
    "what looks like half a pair": (line(event_id=r"\ud83d"), None),
    "nginx's escapes": (line().replace(b"shop.test/", rb"shop.test/caf\xC3\xA9\x22"), None),
    "nginx's escapes beside an escaped backslash": (with_value(rb'"\\x22\x22"'), None),
    "nginx's escapes of no letter": (with_value(rb'"\xE9"'), "not_json"),
    "a schema id before": (b"\0\0\0\x01\x8f" + line(), None),
    "a schema id before no JSON": (b"\0\0\0\0\x07\x02" + line(), "binary_record"),
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
    "UTC by name": (line(ts="2026-03-01T12:30:00 UTC"), None),
    "a zone's name": (line(ts="2026-03-01T12:30:00 Europe/Berlin"), "bad_time"),
    "a zone's name in brackets": (line(ts="2026-03-01T12:30:00+01:00[Europe/Paris]"), None),
    "a zone's name in brackets without an offset": (line(ts="2026-03-01T12:30:00[Europe/Paris]"), "bad_time"),
    "a zone's name after Z": (line(ts="2026-03-01T12:30:00Z PST"), "bad_time"),
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
    reasons = {name: row["reason"] for name, row in zip(JSON_LINES, rows, strict=True)}
    assert reasons == {name: reason for name, (_, reason) in JSON_LINES.items()}
    of_others = {"part_of_line", "not_access_log", *FAULTS}
    assert {reason for reason in reasons.values() if reason} == QUARANTINE_REASONS.keys() - of_others
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


def test_fields_of_json_lines() -> None:
    rows = parse(
        [
            line(geo={"country": " de "}, visitor_id="v", user_agent="curl/8", status=200, event_id=17, referrer="r")
            + b"\r",
            line(geo={"country": "Germany"}, status="204", visitor_id=""),
            line(geo={"country": None}, status="ok", ts="2026-03-01 13:30:00.25+01:00"),
            line(geo={"country": "EU"}, ts="2026-03-01t12:30:00z", url="HTTP://Shop.Test:80?utm_source=x#top"),
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
    r'"a\t"': "a\t",
    r'"\u0000a"': "\0a",
    r'"\u3000a"': "\u3000a",
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
    "DE\u200b": "unknown", "\uff24\uff25": "unknown", "UK": "GB", "XX": "unknown", "DEU": "unknown",
    "D": "unknown", "d e": "unknown", "": "unknown", "unknown": "unknown",
}  # fmt: skip


def test_country_is_a_code_of_two_ascii_letters_or_unknown() -> None:
    rows = parse([line(geo={"country": country}) for country in COUNTRIES])
    assert {name: row["country_code"] for name, row in zip(COUNTRIES, rows, strict=True)} == COUNTRIES


STATUSES: dict[Any, int | None] = {
    200: 200, "404": 404, " 200 ": 200, "ok": None, "": None, 99999999999: None, "2_00": None, "٢٠٠": None,
    "9" * 5000: None, -1: None, 0: None, "000": None, 99: None, 100: 100, 999: 999, 1000: None,
    "200 OK": 200, 404.0: 404, "304.00 ": 304, "200OK": None, 200.5: None, "20 OK": None,
}  # fmt: skip


def test_status_is_one_of_http_or_null() -> None:
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
    # In a CSV with blanks, of Java's ZonedDateTime (RFC 9557), of Go's Time.String, in Apache's brackets.
    " 2026-03-01T12:30:00Z ": 0,
    "2026-03-01T13:30:00.5+01:00[Europe/Berlin]": 500_000,
    "2026-03-01T18:00+0530[Asia/Kolkata]": 0,
    "2026-03-01T12:29:60Z[UTC]": -1_000_000,
    "2026-03-01 13:30:00.123456789 +0100 CET": 123_456,
    "[2026-03-01T13:30:00+01:00]": 0,
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
    ("time_format", "text"),
    [
        ("access_log", "[01/Mar/2026:13:30:00 +0100]"),  # Apache's %t in JSON
        ("rfc1123", " Sun, 01 Mar 2026 12:30:00 GMT"),
        ({"pattern": "%d.%m.%Y %H:%M:%S.%n", "zone": "Europe/Berlin"}, "01.03.2026 13:30:00.000000999"),
        ({"pattern": "%d.%m.%Y %H:%M:%S.%n %z"}, "01.03.2026 13:30:00.000000999 +0100"),
    ],
)
def test_times_of_other_formats(time_format: Any, text: str) -> None:
    source = Source(name="o", format="json", fields=LineFields(time="ts", url="url", time_format=time_format))
    (row,) = parse([line(ts=text)], source)
    assert (row["reason"], row["clicked_at"]) == (None, NOON)


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
    fields = LineFields(time="meta.at-time", url="page.address", time_format=time_format, event_id="meta.id")
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
    source = Source(name="o", format="json", fields=LineFields(time="ts", url="url", time_format=time_format))
    texts = ["1e18", "-1e18", "9" * 400, "1e400", "1e-400", "0." + "0" * 99 + "1", "NaN", "inf", "1_0", "0x1", "", "e",
             "1e", ".", "--1", "1 2", "1e99999999999", ISO, "٣"]  # fmt: skip
    reasons = {text: row["reason"] for text, row in zip(texts, parse([line(ts=t) for t in texts], source), strict=True)}
    assert reasons.pop("") == "missing_time"
    assert set(reasons.values()) == {"bad_time", "time_out_of_range"}
    assert {reasons[text] for text in ("NaN", "inf", "1_0", "0x1", "e", "1e", ".", "--1", "1 2", ISO, "٣")} == {
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
    source = Source(name="o", format="json", fields=LineFields(time="ts", **fields))
    (row,) = parse([json.dumps({"ts": ISO} | record).encode()], source)
    assert (row["reason"], row["url"], row["referrer"]) == (None, "http://shop.test/", "r")


def test_the_longest_lines_that_a_source_may_have_are_read() -> None:
    source = WEB.model_copy(update={"max_line_bytes": 300})
    longest = line(pad="x" * (300 - len(line(pad=""))))
    rows = parse([longest, longest + b"\r\n", longest + b" "], source)
    assert [row["reason"] for row in rows] == [None, None, "line_too_long"]


def test_what_another_program_puts_before_json_is_taken_off() -> None:
    prefixes = [
        *PREFIXES,
        "2026-03-10T12:30:00+00:00\tnginx.access\t",
        "2026-03-10 12:30:00.000000000 +0000 nginx.access: ",
        "2026-03-10T12:30:00.000Z\t6f1a0c9e-22d4\tINFO\t",
        "<13>Mar 10 12:30:00 web1 app: @cee: ",
    ]
    rows = parse([prefix.encode() + line() for prefix in prefixes])
    assert [(row["reason"], row["url"]) for row in rows] == [(None, "http://shop.test/")] * len(prefixes)
    assert all(row["sampled"] == line().decode() for row in rows)


@pytest.mark.parametrize("prefix", ["2026-03-10T12:30:00Z stdout P ", "ERROR: ", "[", '"x" ', "[2026-03-10] INFO "])
def test_json_behind_anything_else_is_none(prefix: str) -> None:
    (row,) = parse([prefix.encode() + line()])
    assert row["reason"] == ("part_of_line" if "stdout P" in prefix else "not_json")


_SEVERAL = Source(name="x", format="json", fields=LineFields(**FIELDS | {"visitor": ("visitor_id", "user_id")}))


@pytest.mark.parametrize(
    ("id_", "is_none"),
    [
        *((word, True) for word in ("null", "NULL", "(null)", "undefined", "None", "nil", "NaN", "[object Object]")),
        ("00000000-0000-0000-0000-000000000000", True),
        *(
            (word, False)
            for word in ("0", "nobody", "nulls", "undefined1", "unit", "00000000-0000-0000-0000-000000000001")
        ),
    ],
)
def test_a_visitor_s_id_that_says_that_there_is_none_is_nobody_s(id_: str, is_none: bool) -> None:
    (row,) = parse([line(visitor_id=id_)])
    assert (row["reason"], row["visitor_id"]) == (None, None if is_none else id_)


@pytest.mark.parametrize(
    "blank", ["\t", "\u00a0", "\u200b", "\ufeff", "\u3000", "\x00", " \t\r\n", "\u00ad\u2028", " \u00a0 "]
)
def test_what_nobody_sees_is_no_value(blank: str) -> None:
    (row,) = parse([line(visitor_id=blank, referrer=blank, user_agent=blank)])
    assert (row["reason"], row["visitor_id"], row["referrer"], row["user_agent"]) == (None, None, None, None)
    names = {"event_id": "missing_event_id", "ts": "missing_time", "url": "missing_url"}
    rows = parse([line(**{name: blank}) for name in names])
    assert [row["reason"] for row in rows] == [*names.values()]
    (row,) = parse([line(visitor_id=blank, user_id="v")], _SEVERAL)
    assert row["visitor_id"] == "v"


@pytest.mark.parametrize("seen", ["\u00a0v", "\x7fv", "é", "\u4e16", "\U0001f600", "!", "~", " v", "\tv"])
def test_what_is_seen_is_a_value_as_it_is(seen: str) -> None:
    rows = [parse([line(visitor_id=seen)], source)[0] for source in (WEB, _SEVERAL)]
    assert [row["visitor_id"] for row in rows] == [seen] * 2

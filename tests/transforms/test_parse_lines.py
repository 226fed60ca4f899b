"""Each line becomes a well-formed click or a reason for quarantine, never nothing."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pytest

from include.sources import JsonFields, Source
from include.tables import QUARANTINE_REASONS
from tests.jobs.temporary_lake import click

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FIELDS = {"event_id": "event_id", "time": "ts", "url": "url", "country": "geo.country", "visitor": "visitor_id",
          "user_agent": "user_agent", "status": "status"}  # fmt: skip
WEB = Source(name="web", format="json", fields=JsonFields(**FIELDS))
NOON = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
ISO = "2026-03-01T12:30:00Z"


def parse(
    spark: SparkSession, source: Source, lines: list[bytes], first_line: int = 2, partitions: int = 1
) -> list[dict[str, Any]]:
    """What parse_lines makes of lines of the log hour 2026-03-01T12, in their order."""
    from pyspark.sql import functions as F

    from spark_jobs.transforms.parse_lines import parse_lines

    rows = [(value, n) for n, value in enumerate(lines)]
    frame = spark.createDataFrame(rows, "raw BINARY, row_id BIGINT").repartition(partitions)
    # Text as a file of text has it: a cast does not look at whether it is UTF-8.
    frame = frame.select(
        F.col("raw").cast("string").alias("value"),
        F.lit(date(2026, 3, 1)).alias("log_date"),
        F.lit(12).alias("log_hour"),
        F.lit("a.log").alias("file"),
        (F.col("row_id") + first_line).alias("line"),
        "row_id",
    )
    found = parse_lines(frame, source, ("utm_*", "gclid")).withColumn("raw", F.make_valid_utf8("raw")).collect()
    return [row.asDict() for row in sorted(found, key=lambda row: row["row_id"])]


def line(**fields: Any) -> bytes:
    """A JSON line; a field given as None is left out."""
    record = {"event_id": "e", "ts": ISO, "url": "http://shop.test/"} | fields
    return json.dumps({name: value for name, value in record.items() if value is not None}).encode()


JSON_LINES: dict[str, tuple[bytes, str | None]] = {
    "fine": (line(), None),
    "spaces around": (b"  " + line() + b"\t ", None),
    "carriage return": (line() + b"\r", None),
    "fields nobody maps": (line(other={"a": [1, {"b": None}]}, more="x" * 999), None),
    "escapes": (line(url='http://shop.test/\u00e9"\\'), None),
    "too long": (line(pad="x" * 70_000), "line_too_long"),
    "too long in bytes, not in characters": (line().replace(b"shop", "é".encode() * 33_000), "line_too_long"),
    "not UTF-8": (line().replace(b"shop", b"sh\xf6p"), "not_utf8"),
    "a lone surrogate's bytes": (line().replace(b"shop", b"\xed\xa0\x80"), "not_utf8"),
    "nothing": (b"", "blank"),
    "white space": (b"  \t ", "blank"),
    "only a carriage return": (b"\r", "blank"),
    "no JSON": (b"GET / HTTP/1.1", "not_json"),
    "cut off": (line()[:-5], "not_json"),
    "a list": (b"[" + line() + b"]", "not_json"),
    "a number": (b"17", "not_json"),
    "two objects": (line() + b" " + line() + b"x", "not_json"),
    "garbage after": (line() + b" garbage", "not_json"),
    "without event id": (line(event_id=None), "missing_event_id"),
    "empty event id": (line(event_id=" "), "missing_event_id"),
    "without anything": (b"{}", "missing_event_id"),
    "without time": (line(ts=None), "missing_time"),
    "empty time": (line(ts=""), "missing_time"),
    "time that is none": (line(ts="yesterday at noon"), "bad_time"),
    "only a year": (line(ts="2026"), "bad_time"),
    "only a day": (line(ts="2026-03-01"), "bad_time"),
    "only a time of day": (line(ts="12:30:00"), "bad_time"),
    "thirteenth month": (line(ts="2026-13-01T12:30:00Z"), "bad_time"),
    "29 February": (line(ts="2026-02-29T12:30:00Z"), "bad_time"),
    "time that is an object": (line(ts={"at": ISO}), "bad_time"),
    "168 h before": (line(ts="2026-02-22T12:00:00Z"), None),
    "more than 168 h before": (line(ts="2026-02-22T11:59:59.999999Z"), "time_out_of_range"),
    "9 min after": (line(ts="2026-03-01T13:09:59.999999Z"), None),
    "10 min after": (line(ts="2026-03-01T13:10:00Z"), "time_out_of_range"),
    "1970": (line(ts="1970-01-01T00:00:00Z"), "time_out_of_range"),
    "2100": (line(ts="2100-01-01T00:00:00Z"), "time_out_of_range"),
    "without URL": (line(url=None), "missing_url"),
    "empty URL": (line(url="  "), "missing_url"),
    "a path": (line(url="/cart"), "bad_url"),
    "another scheme": (line(url="ftp://shop.test/"), "bad_url"),
    "javascript": (line(url="javascript:alert(1)"), "bad_url"),
    "no host": (line(url="http:///cart"), "bad_url"),
    "a space in the URL": (line(url="http://shop.test/a b"), "bad_url"),
    "a line end in the URL": (line(url="http://shop.test/a\n"), "bad_url"),
    "a space in a URL that is not in normal form": (line(url="HTTP://shop.test/a b"), "bad_url"),
    "an object as URL": (line(url={"href": "http://shop.test/"}), "bad_url"),
    "text in place of an object": (line(geo="DE"), None),
}


def test_reason_of_every_json_line(spark: SparkSession) -> None:
    rows = parse(spark, WEB, [raw for raw, _ in JSON_LINES.values()])
    found = {name: row["reason"] for name, row in zip(JSON_LINES, rows, strict=True)}
    assert found == {name: reason for name, (_, reason) in JSON_LINES.items()}
    assert {reason for reason in found.values() if reason} == QUARANTINE_REASONS.keys() - {"not_access_log"}
    for row in rows:
        assert (row["raw"] is None) == (row["reason"] is None)
        assert (row["url"] is None) == (row["reason"] is not None)
    raw_of = dict(zip(JSON_LINES, (row["raw"] for row in rows), strict=True))
    assert raw_of["no JSON"] == "GET / HTTP/1.1"
    assert len(raw_of["too long"]) == 8192


def test_fields_of_json_lines(spark: SparkSession) -> None:
    rows = parse(
        spark,
        WEB,
        [
            b"\xef\xbb\xbf"
            + line(geo={"country": " de "}, visitor_id="v", user_agent="curl/8", status=200, event_id=17)
            + b"\r",
            line(geo={"country": "Germany"}, status="204", visitor_id=""),
            line(geo={"country": None}, status="ok", ts="2026-03-01 13:30:00.25+01:00"),
            line(geo={"country": "UK"}, ts="2026-03-01t12:30:00z", url="HTTP://Shop.Test:80?utm_source=x#top"),
            line(ts="2026-03-01T12:30"),
        ],
        first_line=1,
    )
    assert [row["reason"] for row in rows] == [None] * 5
    assert [row["country_code"] for row in rows] == ["DE", *["unknown"] * 4]
    assert [row["status"] for row in rows] == [200, 204, None, None, None]
    assert [row["visitor_id"] for row in rows] == ["v", None, None, None, None]
    assert (rows[0]["event_id"], rows[0]["user_agent"]) == ("17", "curl/8")
    assert rows[3]["url"] == "http://shop.test/"
    micros = [row["clicked_at"].replace(tzinfo=row["clicked_at"].tzinfo or UTC) for row in rows]
    assert micros == [NOON, NOON, NOON.replace(microsecond=250_000), NOON, NOON]


@pytest.mark.parametrize(
    ("time_format", "time"),
    [
        ("epoch_seconds", int(NOON.timestamp())),
        ("epoch_seconds", f"{int(NOON.timestamp())}.000000"),
        ("epoch_milliseconds", int(NOON.timestamp()) * 1000),
    ],
)
def test_renamed_and_nested_fields(spark: SparkSession, time_format: Any, time: Any) -> None:
    fields = JsonFields(time="meta.at-time", url="page.address", time_format=time_format, event_id="meta.id")
    source = Source(name="other", format="json", fields=fields)
    texts = [
        {"meta": {"at-time": time, "id": "x"}, "page": {"address": "http://shop.test/p"}},
        {"meta": {"at-time": "noon", "id": "x"}, "page": {"address": "http://shop.test/p"}},
        {"meta": {"at-time": time, "id": "x"}, "page": "http://shop.test/p"},
    ]
    rows = parse(spark, source, [json.dumps(text).encode() for text in texts])
    assert [row["reason"] for row in rows] == [None, "bad_time", "missing_url"]
    assert (rows[0]["url"], rows[0]["event_id"], rows[0]["country_code"]) == ("http://shop.test/p", "x", None)
    assert rows[0]["clicked_at"].replace(tzinfo=UTC) == NOON


def log_line(
    request: str = "GET /a HTTP/1.1", time: str = "01/Mar/2026:12:30:00 +0000", status: str = "200", rest: str = ""
) -> bytes:
    return f'198.51.100.7 - frank [{time}] "{request}" {status} 2326{rest}'.encode()


REST = ' "http://from.test/" "curl/8"'
LOG_LINES: dict[str, tuple[bytes, str | None, str | None]] = {
    "fine": (log_line(rest=REST), None, "http://www.test/a"),
    "carriage return": (log_line(rest=REST) + b"\r", None, "http://www.test/a"),
    "more at the end": (log_line(rest=REST + ' "1.2.3.4" 17'), None, "http://www.test/a"),
    "absolute target": (log_line("GET http://Other.test/x HTTP/1.1", rest=REST), None, "http://other.test/x"),
    "HTTP/0.9": (log_line("GET /a", rest=REST), None, "http://www.test/a"),
    "query": (log_line("GET /a?utm_source=1&b=2 HTTP/1.1", rest=REST), None, "http://www.test/a?b=2"),
    "escaped quotes": (log_line(rest=' "-" "a \\"quoted\\" agent \\\\"'), None, "http://www.test/a"),
    "escaped quote in the path": (log_line('GET /a\\"b HTTP/1.1', rest=REST), None, 'http://www.test/a\\"b'),
    "dashes": (log_line(rest=' "-" "-"').replace(b"2326", b"-"), None, "http://www.test/a"),
    "offset": (log_line(time="01/Mar/2026:05:30:00 -0700", rest=REST), None, "http://www.test/a"),
    "missing closing quote": (log_line(rest=' "http://from.test/" "curl/8'), "not_access_log", None),
    "no agent": (log_line(rest=' "http://from.test/"'), "not_access_log", None),
    "no time": (b'198.51.100.7 - - "GET /a HTTP/1.1" 200 1 "-" "-"', "not_access_log", None),
    "status that is none": (log_line(status="OK", rest=REST), "not_access_log", None),
    "JSON": (line(), "not_access_log", None),
    "blank": (b"  ", "blank", None),
    "month that is none": (log_line(time="01/Foo/2026:12:30:00 +0000", rest=REST), "bad_time", None),
    "31 February": (log_line(time="31/Feb/2026:12:30:00 +0000", rest=REST), "bad_time", None),
    "tomorrow": (log_line(time="02/Mar/2026:12:30:00 +0000", rest=REST), "time_out_of_range", None),
    "bytes of a handshake": (log_line("\\x16\\x03\\x01", rest=REST), "missing_url", None),
    "request is a dash": (log_line("-", rest=REST), "missing_url", None),
    "asterisk": (log_line("OPTIONS * HTTP/1.0", rest=REST), "bad_url", None),
    "not UTF-8": (log_line(rest=REST).replace(b"curl", b"c\xfcrl"), "not_utf8", None),
}


def test_reason_and_url_of_every_combined_line(spark: SparkSession) -> None:
    source = Source(name="access", format="combined", base_url="http://www.test")
    rows = parse(spark, source, [raw for raw, _, _ in LOG_LINES.values()])
    found = {name: (row["reason"], row["url"]) for name, row in zip(LOG_LINES, rows, strict=True)}
    assert found == {name: (reason, url) for name, (_, reason, url) in LOG_LINES.items()}
    by_name = dict(zip(LOG_LINES, rows, strict=True))
    assert by_name["offset"]["clicked_at"].replace(tzinfo=UTC) == NOON
    fine, dashes = by_name["fine"], by_name["dashes"]
    assert (fine["client_address"], fine["referrer"], fine["user_agent"], fine["status"]) == (
        "198.51.100.7", "http://from.test/", "curl/8", 200,
    )  # fmt: skip
    assert (dashes["referrer"], dashes["user_agent"]) == (None, None)
    assert by_name["escaped quotes"]["user_agent"] == r"a \"quoted\" agent \\"
    assert all(row["country_code"] is None for row in rows)


def test_common_lines_have_no_referrer(spark: SparkSession) -> None:
    source = Source(name="access", format="common", base_url="http://www.test")
    rows = parse(spark, source, [log_line(), log_line(rest=REST), log_line()[:40]])
    assert [row["reason"] for row in rows] == [None, None, "not_access_log"]
    assert [(row["url"], row["referrer"], row["status"]) for row in rows[:2]] == [("http://www.test/a", None, 200)] * 2


def _any_line(rng: random.Random) -> bytes:
    match rng.randrange(5):
        case 0:
            return rng.randbytes(rng.randrange(80)).replace(b"\n", b"")
        case 1:
            raw = bytearray(click(str(rng.random()), ISO).rstrip())
            raw[rng.randrange(len(raw))] = rng.choice(b'"{}\\:, \x00\xff')
            return bytes(raw)
        case 2:
            raw = bytearray(log_line(rest=REST))
            raw[rng.randrange(len(raw))] = rng.choice(b'"[]\\- \x00\x01\xff')
            return bytes(raw)
        case 3:
            return click(str(rng.random()), ISO).rstrip()[: rng.randrange(120)]
        case _:
            return line(ts=rng.choice([ISO, 17, True, [], {}, "1e9"]), url=rng.choice(["http://a", 1, [], {}, ""]))


@pytest.mark.parametrize("source", [WEB, Source(name="a", format="combined", base_url="http://www.test")],
                         ids=lambda source: source.format)  # fmt: skip
def test_no_line_vanishes_whatever_it_holds(spark: SparkSession, source: Source) -> None:
    rng = random.Random(5)
    lines = [_any_line(rng) for _ in range(2000)]
    rows = parse(spark, source, lines)
    assert [row["row_id"] for row in rows] == list(range(2000))
    reasons = Counter(row["reason"] for row in rows)
    assert reasons[None] > 50
    assert reasons.keys() - {None} <= QUARANTINE_REASONS.keys()
    for row in rows:
        if row["reason"] is None:
            assert row["clicked_at"] is not None
            assert row["url"].startswith(("http://", "https://"))
    # Neither the lines' order nor their partitions change what each is.
    again = parse(spark, source, lines, partitions=5)
    assert again == rows

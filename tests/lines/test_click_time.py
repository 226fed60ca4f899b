from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.sources import JsonFields, Source
from spark_jobs.lines.click_time import hour_reader

LOG = Source(name="access", format="combined", base_url="http://a")
NOW = datetime(2200, 1, 2, tzinfo=UTC)
MOMENTS = st.datetimes(
    min_value=datetime(1990, 1, 2),
    max_value=datetime(2200, 1, 1),
    timezones=st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)


def json_source(time_format: Any = "iso8601") -> Source:
    return Source(name="web", format="json", fields=JsonFields(time="a.t", url="u", time_format=time_format))


def read(source: Source, line: bytes) -> str | None:
    hour = hour_reader(source, NOW)(line)
    return hour and str(hour)


def expected(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()[:13]


@given(MOMENTS)
def test_access_log_times_are_read_with_their_offset(moment: datetime) -> None:
    line = f'1.2.3.4 - - [{moment:%d/%b/%Y:%H:%M:%S %z}] "GET / HTTP/1.1" 200 1 "-" "-"\r\n'
    assert read(LOG, line.encode()) == expected(moment)


@given(MOMENTS, st.sampled_from("T "))
def test_iso_times_are_read_with_their_offset(moment: datetime, separator: str) -> None:
    line = json.dumps({"a": {"t": f" {moment.isoformat(separator)} "}}).encode()
    assert read(json_source(), line) == expected(moment)


@given(MOMENTS, st.booleans())
def test_epoch_times_are_read_as_number_or_text(moment: datetime, is_text: bool) -> None:
    seconds = int(moment.timestamp())
    for time_format, number in (("epoch_seconds", seconds), ("epoch_milliseconds", seconds * 1000 + 999)):
        line = json.dumps({"a": {"t": str(number) if is_text else number}}).encode()
        assert read(json_source(time_format), line) == expected(moment)


def test_iso_time_without_offset_is_utc() -> None:
    assert read(json_source(), b'{"a":{"t":"2026-03-01T23:59:59.999"}}') == "2026-03-01T23"


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"[]", b"17", b"{}", b'{"a":1}', b'{"a":{"t":null}}', b'{"a":{"t":[]}}', b'{"a":{"t":"noon"}}',
     b'{"a":{"t":"2026-13-01T00:00:00Z"}}', b'{"a":{"t":"0001-01-01T00:00:00+05:00"}}',
     b'{"a":{"t":"9999-12-31T23:59:59-05:00"}}', b"\xff\xfe", b'{"a":{"t":"\xff"}}'],
)  # fmt: skip
def test_json_line_without_a_time_has_no_hour(line: bytes) -> None:
    assert read(json_source(), line) is None


@pytest.mark.parametrize("value", [b'"x"', b"1e300", b"-1e300", b"null", b"{}", b'"inf"', b'"nan"'])
@pytest.mark.parametrize("time_format", ["epoch_seconds", "epoch_milliseconds"])
def test_number_that_is_no_time_has_no_hour(time_format: str, value: bytes) -> None:
    assert read(json_source(time_format), b'{"a":{"t":' + value + b"}}") is None


@pytest.mark.parametrize(
    "time",
    [b"-", b"01/Foo/2026:00:00:00 +0000", b"31/Feb/2026:00:00:00 +0000", b"01/Mar/2026:25:00:00 +0000",
     b"01/Mar/2026:00:00:00 +9900", b"01/Jan/0001:00:00:00 +0500", b"31/Dec/9999:23:00:00 -0500"],
)  # fmt: skip
def test_access_log_line_without_a_time_has_no_hour(time: bytes) -> None:
    assert read(LOG, b"1.2.3.4 - - [" + time + b'] "GET / HTTP/1.1" 200 1') is None


@pytest.mark.parametrize(
    ("time", "hour"),
    [
        ("1989-12-31T23:59:59.999999Z", None),
        ("1990-01-01T01:00:00+02:00", None),
        ("1990-01-01T00:00:00Z", "1990-01-01T00"),
        ("2200-01-02T00:59:59.999999Z", "2200-01-02T00"),
        ("2200-01-02T02:00:00+02:00", "2200-01-02T00"),
        ("2200-01-02T01:00:00Z", None),
    ],
)
def test_a_click_is_not_older_than_the_web_nor_after_the_hour_that_it_is_now(time: str, hour: str | None) -> None:
    assert read(json_source(), json.dumps({"a": {"t": time}}).encode()) == hour


def test_a_line_that_is_too_long_for_the_source_is_not_read() -> None:
    source = json_source().model_copy(update={"max_line_bytes": 256})
    line = b'{"a":{"t":"2026-03-01T00:00:00Z"},"u":"%s"}' % (b"x" * 215)
    assert len(line) == 256
    assert read(source, line + b"\r\n") == "2026-03-01T00"
    assert read(source, line + b" \r\n") is None

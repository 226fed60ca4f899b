"""The log hour in which a line lands is the hour of the click that it becomes there, however odd its time is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from include.hours import Hour
from include.source_fields import LineFields
from include.sources import Source
from spark_jobs.landing.land import FIRST_HOUR
from spark_jobs.lines.parse_lines import parse_lines
from spark_jobs.lines.read_lines import LandedFile, ReadFile, read_lines
from tests.landing.landing_zone import ACCESS, FIRST, NOW, SECOND, THIRD, land, log_line

WEB = Source(name="web", format="json", fields=LineFields(time="a.t", url="u"))
SECONDS = Source(name="web", format="json", fields=LineFields(time="a.t", url="u", time_format="epoch_seconds"))
MILLIS = Source(name="web", format="json", fields=LineFields(time="a.t", url="u", time_format="epoch_milliseconds"))
#: Of the hour before and after each line that may have no time.
BEFORE, AFTER = FIRST, THIRD


def json_line(time: Any) -> bytes:
    return json.dumps({"a": {"t": time}, "u": "http://shop.test/"}).encode() + b"\n"


def epoch_line(hour: Hour, scale: int) -> bytes:
    return json_line(int(hour.start.timestamp()) * scale)


def landed(source: Source, lines: list[bytes]) -> dict[bytes, list[Hour]]:
    """The log hours in which each line has landed; those of the clicks that they are there are the same."""
    hours: dict[bytes, list[Hour]] = {}
    with TemporaryDirectory() as folder:
        logs = Path(folder) / "a.log"
        logs.write_bytes(b"".join(lines))
        of_log = land(source, logs, Path(folder) / "landing", NOW)
        assert of_log is not None
        assert sum(of_log.lines.values()) == len(lines)
        for hour in of_log.lines:
            for row in parsed(source, Path(folder) / "landing", hour, of_log.name):
                hours.setdefault(row["value"], []).append(hour)
                if row["clicked_at"] is not None:
                    assert Hour.containing(row["clicked_at"]) == hour, row["value"]
    return hours


def parsed(source: Source, landing: Path, hour: Hour, name: str) -> Iterator[dict[str, Any]]:
    """The lines of a landed file, each with the click's time; None for what is no click."""
    folder = landing / source.name / f"log_date={hour.day}" / f"log_hour={hour.hour:02d}"
    for lines in read_lines(ReadFile(LandedFile(folder / f"{name}.gz", hour))):
        numbered = lines.append_column("row_id", pa.array(range(len(lines)), pa.int64()))
        clicks = parse_lines(numbered, source, ())
        yield from pa.table({"value": lines["value"], "clicked_at": clicks["clicked_at"]}).to_pylist()


# --- any time -------------------------------------------------------------------------------------

MOMENTS = st.datetimes(
    min_value=datetime(1990, 1, 2),
    max_value=datetime(2026, 2, 27),
    timezones=st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
ISO_TIMES = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "", "", " "]),
        st.sampled_from(["2026-03-01", "2026-02-28", "1989-12-31", "2027-01-01", "0001-01-01", "20260301", "2026-W09-7",
                         "2026-3-1", "2026-060", "2026-02-29"]),
        st.sampled_from(["T", "T", "t", " ", "_"]),
        st.sampled_from(["06:10", "061000", "06:59:59", "06:59:60", "06:60:00", "24:00:00", "23:59:59.9999999", "06",
                         "06:30:00,5", "06:30:00."]),
        st.sampled_from(["Z", "Z", "", "+01:00", "-0130", "+05", " Z", "+24:00", " PST", "[UTC]"]),
    ),
) | MOMENTS.map(datetime.isoformat) | st.sampled_from(["2026-03-01", "", "noon", "now", "1772344800"])  # fmt: skip
EPOCH_TIMES = st.sampled_from([
    1772344800, "1772344800", 1772344800.5, " 1772344800 ", "+1772344800.", "1772344800e0", "1.7723448e9", "1_0", "NaN",
    -1, 0, 631152000, "9" * 20, "1e300", True, "0x10",
])  # fmt: skip
ODD_VALUES = st.none() | st.booleans() | st.lists(st.none(), max_size=1) | st.dictionaries(st.just("t"), st.integers())


@st.composite
def json_lines(draw: st.DrawFn, times: st.SearchStrategy[Any]) -> bytes:
    """A line with its time named once, twice or not at all, in one object or in two."""
    named = st.lists((times | times | ODD_VALUES).map(lambda time: f'"t": {json.dumps(time)}'), max_size=2)
    objects = draw(st.lists(named.map(lambda pairs: '"a": {' + ", ".join(pairs) + "}"), min_size=1, max_size=2))
    url = draw(st.sampled_from(['"u": "http://shop.test/"', '"u": "http://shop.test/"', '"u": 7', '"t": 1']))
    end = draw(st.sampled_from(["}", "}", "}", "", ",}", "} x"]))
    return ("{" + ", ".join([*objects, url]) + end).encode()


ACCESS_TIMES = MOMENTS.map(lambda moment: f"{moment:%d/%b/%Y:%H:%M:%S %z}") | st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["01/Mar/2026", "01/mar/2026", "1/Mar/2026", "01/Foo/2026", "31/Feb/2026", "01/Jan/0001"]),
        st.sampled_from([":06:10:00", ":06:59:60", ":06:60:00", ":24:00:00", ":06:10"]),
        st.sampled_from([" +0000", " +0130", " -2359", " +2400", " +0060", " +01:00", " UTC", ""]),
    ),
)


@st.composite
def access_lines(draw: st.DrawFn) -> bytes:
    """A line with one time or two, in brackets where they belong or elsewhere."""
    user = draw(st.sampled_from(["-", "-", "[x]", "a b", "[02/Mar/2026:01:00:00 +0000]"]))
    request = draw(
        st.sampled_from(['"GET / HTTP/1.1"', '"GET /[02/Mar/2026:01:00:00 +0000]"', '"\\x16\\x03"', '"', ""])
    )
    return f'10.0.0.1 - {user} [{draw(ACCESS_TIMES)}] {request} 200 1 "-" "curl"'.encode()


def around(line: bytes, before: bytes, after: bytes) -> list[bytes]:
    return [before, line + b"\n", after]


@settings(deadline=None)
@given(json_lines(ISO_TIMES))
@example(b'{"a": {"t": "2026-03-01T06:10:00Z", "t": "2026-03-01T08:10:00Z"}, "u": "http://shop.test/"}')
@example(b'{"a": {"t": "2026-03-01T06:10:00Z"}, "a": {"t": "2026-03-01T08:10:00Z"}, "u": "http://shop.test/"}')
def test_a_json_line_lands_in_the_hour_of_its_click(line: bytes) -> None:
    landed(WEB, around(line, json_line(f"{BEFORE}:00:00Z"), json_line(f"{AFTER}:00:00Z")))


@settings(deadline=None)
@given(json_lines(EPOCH_TIMES), st.sampled_from([(SECONDS, 1), (MILLIS, 1000)]))
def test_a_line_with_an_epoch_time_lands_in_the_hour_of_its_click(line: bytes, format_: tuple[Source, int]) -> None:
    source, scale = format_
    landed(source, around(line, epoch_line(BEFORE, scale), epoch_line(AFTER, scale)))


@settings(deadline=None)
@given(access_lines())
def test_a_line_of_an_access_log_lands_in_the_hour_of_its_click(line: bytes) -> None:
    landed(ACCESS, around(line, log_line("05:00", "before"), log_line("07:00", "after")))


# --- single times ---------------------------------------------------------------------------------


def hour_of_web(line: bytes) -> Hour:
    (hour,) = landed(WEB, around(line, json_line(f"{BEFORE}:00:00Z"), json_line(f"{AFTER}:00:00Z")))[line + b"\n"]
    return hour


@pytest.mark.parametrize(
    "line",
    [
        b'{"a": {"t": "2026-03-01T06:10:00Z", "t": "2026-03-01T08:10:00Z"}}',
        b'{"a": {"t": "2026-03-01T06:59:60Z"}}',
        b'{"a": {"t": "2026-03-01T06:10"}}',
        b'{"a": {"t": " 2026-03-01T06:10:00Z "}}',
        b'{"a": {"t": "2026-03-01 08:10:00+02:00"}, "u": "no url"}',
        b'{"a": {"t": "2026-03-01T06:10:00.123456789Z"}}\r',
    ],
)
def test_a_time_is_read_as_that_of_a_click(line: bytes) -> None:
    assert hour_of_web(line) == SECOND


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"[]", b"17", b"{}", b'{"a":1}', b'{"a":{"t":null}}', b'{"a":{"t":[]}}', b'{"a":{"t":"noon"}}',
     b'{"a":{"t":"2026-03-01"}}', b'{"a":{"t":"20260301T061000Z"}}', b'{"a":{"t":"2026-W09-7T06:10:00Z"}}',
     b'{"a":{"t":"2026-03-01T06:10:00Z"},}',
     b'{"a":{"t":"2026-13-01T00:00:00Z"}}', b'{"a":{"t":"0001-01-01T00:00:00+05:00"}}',
     b'{"a":{"t":"9999-12-31T23:59:59-05:00"}}', b"\xff\xfe", b'{"a":{"t":"2026-03-01T06:10:00Z"},"u":"\xff"}'],
)  # fmt: skip
def test_a_line_without_a_time_goes_with_the_line_before_it(line: bytes) -> None:
    assert hour_of_web(line) == BEFORE


@pytest.mark.parametrize(
    ("line", "hour"),
    [
        (log_line("08:59", "a").replace(b":00 +0000", b":60 +0200"), SECOND),
        (b'[01/Mar/2026:06:00:00 +0000] "\n', BEFORE),
        (b'10.0.0.1 - - [01/Mar/2026:06:00:00 +0000] "\\x16\\x03" 400 1\n', SECOND),
        (b'10.0.0.1 - - - "GET /[01/Mar/2026:06:00:00 +0000] HTTP/1.1" 200 1\n', BEFORE),
        (log_line("06:00", "a").replace(b"curl", b"\xff"), BEFORE),
        (log_line("06:00", "a", day="01/Foo/2026"), BEFORE),
    ],
)
def test_the_time_of_an_access_log_is_where_it_belongs(line: bytes, hour: Hour) -> None:
    assert landed(ACCESS, [log_line("05:00", "before"), line, log_line("07:00", "after")])[line] == [hour]


@pytest.mark.parametrize(
    ("time", "hour"),
    [
        ("1989-12-31T23:59:59.999999Z", BEFORE),
        ("1990-01-01T01:00:00+02:00", BEFORE),
        ("1990-01-01T00:00:00Z", FIRST_HOUR),
        ("2026-03-01T09:59:59.999999Z", Hour.containing(NOW)),
        ("2026-03-01T11:59:00+02:00", Hour.containing(NOW)),
        ("2026-03-01T10:00:00Z", BEFORE),
    ],
)
def test_a_click_is_not_older_than_the_web_nor_after_the_hour_that_it_is_now(time: str, hour: Hour) -> None:
    assert hour_of_web(json_line(time).removesuffix(b"\n")) == hour


def test_a_line_that_is_too_long_for_the_source_has_no_hour() -> None:
    source = WEB.model_copy(update={"max_line_bytes": 256})
    line = b'{"a":{"t":"2026-03-01T06:00:00Z"},"u":"%s"}' % (b"x" * 215)
    assert len(line) == 256
    before, after = json_line(f"{BEFORE}:00:00Z"), json_line(f"{AFTER}:00:00Z")
    hours = landed(source, [before, line + b"\r\n", line + b" \r\n", after])
    assert (hours[line + b"\r\n"], hours[line + b" \r\n"]) == ([SECOND], [SECOND])
    hours = landed(source, [before, line + b" \r\n", after])
    assert hours[line + b" \r\n"] == [BEFORE]

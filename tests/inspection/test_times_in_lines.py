"""Lines without a time that a format could have are not taken apart: none is left out that has one."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from include.settings import Settings
from include.time_formats import NamedTimeFormat, TimeFormat, TimePattern
from spark_jobs.inspection.inspection import inspect
from spark_jobs.inspection.source_toml import as_toml
from spark_jobs.inspection.time_guesses import may_have_times

MOMENT = datetime(2026, 3, 9, 7, 5, 1, 20_000, tzinfo=timezone(timedelta(hours=5, minutes=30)))
#: Texts of this moment by others' writers, and the format of each.
TEXTS: list[tuple[NamedTimeFormat, str]] = [
    ("iso8601", MOMENT.isoformat()),
    ("iso8601", MOMENT.isoformat(" ", "minutes")),
    ("iso8601", "2026-03-09"),  # its clock is in another field
    ("access_log", MOMENT.strftime("[%d/%b/%Y:%H:%M:%S %z]")),
    ("access_log", MOMENT.strftime("%d/%b/%Y:%H:%M:%S")),  # its offset is in another field
    ("rfc1123", MOMENT.strftime("%a, %d %b %Y %H:%M:%S %z")),
    ("epoch_seconds", str(MOMENT.timestamp())),
    ("epoch_milliseconds", "1.77e12"),
]
PATTERNS = [
    "%d/%b/%Y:%H:%M:%S.%f", "%a %b %-d %H:%M:%S %Y", "%d.%m.%y %H:%M", "%A, %d. %B %Y, %I:%M %p", "%j/%Y %H Uhr",
    "100%% %Y-%m-%dT%H", "(%Y) [%m] {%d} *%H+",
]  # fmt: skip


def _are_in(line: str, *formats: TimeFormat) -> bool:
    return may_have_times(pa.chunked_array([[b"", line.encode()]], pa.binary()), formats)


@pytest.mark.parametrize(("name", "text"), TEXTS)
def test_a_line_with_a_time_is_looked_at(name: NamedTimeFormat, text: str) -> None:
    assert _are_in(f'203.0.113.9 - "{text}" GET / 200', name)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_line_with_a_time_of_a_pattern_is_looked_at(pattern: str) -> None:
    text = MOMENT.strftime(pattern)
    assert _are_in(f"203.0.113.9 - [{text}] GET /", TimePattern(pattern=pattern, zone="UTC"))
    parts_elsewhere = ";".join(reversed(text.split(" ")))
    assert _are_in(parts_elsewhere, TimePattern(pattern=pattern, zone="UTC"))


def test_the_time_of_another_format_is_none() -> None:
    line = '203.0.113.9 - - [09/Mar/2026:07:05:01 +0530] "GET /2026/03/09/a-b-c:1.5 HTTP/1.1" 200 5'
    assert not _are_in(line, "iso8601", TimePattern(pattern="%d/%b/%Y:%H:%M:%S.%g", zone="UTC"))
    assert _are_in(line, "iso8601", "access_log")
    assert not _are_in("2026-03-09 07:05:01 GET /9/Mar/2026", "access_log")
    assert not may_have_times(pa.chunked_array([], pa.binary()), ["iso8601"])


@pytest.mark.parametrize(
    ("of_source", "line"),
    [
        ({"format": "csv", "columns": ["clock", "day", "page"],
          "fields": {"date": "day", "time": "clock", "url": "page",
                     "time_format": {"pattern": "%d.%m.%Y %H:%M", "zone": "UTC"}}},
         "07:05,09.03.2026,/a"),
        ({"format": "csv", "columns": ["day", "offset", "page"],
          "fields": {"date": "day", "time": "offset", "url": "page", "time_format": "access_log"}},
         "09/Mar/2026:07:05:01,+0530,/a"),
        ({"format": "access", "log_format": '%h %{%H:%M:%S}t %{%d/%b/%Y}t "%r" %s', "time_zone": "UTC"},
         '203.0.113.9 07:05:01 09/Mar/2026 "GET /a HTTP/1.1" 200'),
        ({"format": "json", "fields": {"time": "t", "url": "u"}}, r'{"t": "2026\u002d03-09T07:05:01Z", "u": "/a"}'),
    ],
)  # fmt: skip
def test_a_declared_source_fits_however_its_times_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_source: dict[str, object], line: str
) -> None:
    sources = tmp_path / "sources.toml"
    sources.write_text(as_toml("own", {"base_url": "http://own.example", **of_source}))
    monkeypatch.setenv("CLICKMILL_SOURCES", str(sources))
    log = tmp_path / "own.log"
    log.write_text(f"{line}\n" * 3)
    inspection = inspect(log, Settings.from_environment(), "own")
    assert (inspection.is_declared, inspection.share, inspection.urls) == (True, 1.0, 1)

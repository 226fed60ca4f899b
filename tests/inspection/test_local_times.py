"""Times without an offset: of which zone they are is said, written, and may be told."""

from __future__ import annotations

import json
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from clickmill.app import run
from include.errors import UsageError
from include.sources import Source
from spark_jobs.inspection.source_toml import as_toml
from spark_jobs.inspection.time_guesses import time_format_of
from spark_jobs.lines.parse_lines import click_times

PRESETS = Path(__file__).parent / "presets"
#: Each is the same half past twelve of a summer day, by a clock on the wall.
LOCAL = [
    "2026-07-10 12:30:00", "2026-07-10T12:30:00", "2026-07-10 12:30", "2026/07/10 12:30:00", "10.07.2026 12:30:00",
    "10/Jul/2026:12:30:00", "10-Jul-2026 12:30:00", "2026-07-10 12:30:00,250", "2026-07-10T12:30:00.250123",
    "Fri Jul 10 12:30:00 2026",
]  # fmt: skip


def inspected(capfd: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, Any]:
    run(["inspect", "--json", *map(str, arguments)])
    file: dict[str, Any] = json.loads(capfd.readouterr().out)["files"][0]
    return file


@pytest.fixture(autouse=True)
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "sources.toml"
    file.write_text("[sources]\n")
    monkeypatch.setenv("CLICKMILL_SOURCES", str(file))
    monkeypatch.setenv("CLICKMILL_HOME", str(tmp_path / "home"))
    return file


def test_a_preset_of_local_times_says_of_which_zone(
    capfd: pytest.CaptureFixture[str], sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = inspected(capfd, PRESETS / "werkzeug.log")
    assert file["has_local_times"]
    assert file["settings"]["time_zone"] == "UTC"

    berlin = inspected(capfd, PRESETS / "werkzeug.log", "--time-zone", "Europe/Berlin", "--write")
    assert berlin["rows"][0]["clicked_at"].startswith("2026-03-10T11:30:00")
    assert tomllib.loads(sources.read_text())["sources"]["werkzeug"]["time_zone"] == "Europe/Berlin"

    monkeypatch.setenv("COLUMNS", "400")
    run(["inspect", str(PRESETS / "haproxy.log")])
    shown = capfd.readouterr().out
    assert "its times have no offset" in shown
    assert 'time_zone = "UTC"' in shown


def test_times_with_an_offset_need_no_zone(capfd: pytest.CaptureFixture[str]) -> None:
    file = inspected(capfd, PRESETS / "combined.log", "--time-zone", "Europe/Berlin")
    assert not file["has_local_times"]
    assert "time_zone" not in file["settings"]


@pytest.mark.parametrize("text", LOCAL)
def test_a_local_time_of_json_is_of_the_zone_that_is_written(text: str) -> None:
    fields = {"time": "at", "url": "url", "time_format": time_format_of([text] * 9, "Europe/Berlin")}
    table = as_toml("web", {"format": "json", "fields": fields})
    read = Source.model_validate(tomllib.loads(table)["sources"]["web"])
    line = json.dumps({"at": text, "url": "http://a.example/"}).encode()
    (micros,) = click_times(pa.table({"value": [line], "bytes": [len(line)]}), read).to_pylist()
    assert datetime.fromtimestamp(micros // 1_000_000, UTC) == datetime(2026, 7, 10, 10, 30, tzinfo=UTC)


def test_seconds_may_have_decimals_or_none(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "web.csv"
    times = ["2026-03-10 12:30:00", "2026-03-10 12:30:00.5"] * 5
    log.write_text("when,url,ip\n" + "".join(f"{time},http://a.example/,8.8.8.8\n" for time in times))
    file = inspected(capfd, log)
    assert file["share"] == 1
    assert file["has_local_times"]
    assert [each["zone"] for each in file["settings"]["fields"]["time_format"]] == ["UTC", "UTC"]


def test_a_zone_that_is_none_is_one_line() -> None:
    with pytest.raises(UsageError, match="--time-zone 'Mars/Phobos': no such time zone; expected a name such as UTC"):
        run(["inspect", "--time-zone", "Mars/Phobos", str(PRESETS / "combined.log")])

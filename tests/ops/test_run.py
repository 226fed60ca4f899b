"""make run: arguments are checked before anything starts, and only what is missing lands."""

from __future__ import annotations

import io
import os
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console

from include.errors import ClickmillError
from include.hours import HourRange
from include.landing import SUCCESS, closed_hours, hour_folder
from include.settings import Settings
from include.sources import load_sources
from include.time_formats import TimePattern
from ops import run as run_module
from ops.home import Home
from ops.run import SAMPLE_CLICKS, SAMPLE_HOURS, RunArguments, checked_arguments, land_logs, missing_sample_hours
from tests.ops.log_hours import hour

SOURCES = """
[sources.web]
format = "json"
[sources.web.fields]
time = "ts"
url = "url"

[sources.edge]
format = "combined"
base_url = "https://edge.example"

[sources.shop]
format = "combined"
base_url = "https://shop.example"
"""


# --- arguments ------------------------------------------------------------------------------------


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    sources = tmp_path / "sources.toml"
    sources.write_text(SOURCES)
    monkeypatch.setenv("CLICKMILL_SOURCES", str(sources))
    file = tmp_path / "my access.log"
    file.write_text("a line\n")
    return file


def test_without_arguments_it_is_the_sample() -> None:
    assert checked_arguments({}) == RunArguments(SAMPLE_HOURS, SAMPLE_CLICKS, None, "web")


def test_makes_variables_are_read() -> None:
    environment = {"HOURS": "3", "CLICKS": " 500 ", "LOGS": "", "FORMAT": "", "SOURCE": ""}

    assert checked_arguments(environment) == RunArguments(3, 500, None, "web")


def test_format_chooses_the_first_source_of_that_format(logs: Path) -> None:
    assert checked_arguments({"LOGS": str(logs), "FORMAT": "combined"}).source == "edge"
    assert checked_arguments({"LOGS": str(logs), "FORMAT": "combined", "SOURCE": "shop"}).source == "shop"
    assert checked_arguments({"LOGS": str(logs), "SOURCE": "shop"}).logs == logs


def test_logs_without_a_format_are_of_the_source_that_inspect_declares(logs: Path) -> None:
    line = '203.0.113.7 - - [10/Mar/2026:12:30:00 +0000] "GET /a HTTP/1.1" 200 5 "-" "curl/8"\n'
    logs.write_text(line * 3)
    arguments = checked_arguments({"LOGS": str(logs), "SITE": "https://new.example"})
    assert arguments.source == "my_access"
    declared = tomllib.loads(Path(os.environ["CLICKMILL_SOURCES"]).read_text())["sources"]
    assert declared["my_access"]["base_url"] == "https://new.example"
    assert checked_arguments({"LOGS": str(logs)}) == arguments, "it is declared now, and declared once"


def test_the_zone_of_local_times_is_that_of_the_declared_source(logs: Path) -> None:
    logs.write_text('{"when": "10.03.2026 12:30:00", "url": "https://a.test/b", "status": 200, "ip": "8.8.8.8"}\n' * 3)
    arguments = checked_arguments({"LOGS": str(logs), "TIME_ZONE": "Europe/Berlin"})
    source = load_sources(Settings.from_environment())[arguments.source]
    assert [each.zone for each in source.time_formats if isinstance(each, TimePattern)] == ["Europe/Berlin"]


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"HOURS": "0"}, "HOURS=0: expected a whole number from 1 to"),
        ({"HOURS": "ten"}, "HOURS=ten: expected a whole number"),
        ({"CLICKS": "1e4"}, "CLICKS=1e4: expected a whole number"),
        ({"FORMAT": "json"}, "FORMAT=json goes with LOGS=path"),
        ({"SOURCE": "web"}, "SOURCE=web goes with LOGS=path"),
        ({"LOGS": "{logs}"}, "it is not sure what these files are"),
        ({"SITE": "https://shop.example"}, "SITE=https://shop.example goes with LOGS=path"),
        ({"TIME_ZONE": "Europe/Berlin"}, "TIME_ZONE=Europe/Berlin goes with LOGS=path"),
        ({"LOGS": "{logs}", "SOURCE": "web", "SITE": "https://a.test"}, "SITE=https://a.test is for logs that are"),
        ({"LOGS": "{logs}", "FORMAT": "json", "TIME_ZONE": "UTC"}, "TIME_ZONE=UTC is for logs that are inspected"),
        ({"LOGS": "{logs}", "FORMAT": "xml"}, "FORMAT=xml: expected one of json, combined, common"),
        ({"LOGS": "{logs}", "FORMAT": "common"}, "FORMAT=common: no source in"),
        ({"LOGS": "{logs}", "SOURCE": "nix"}, "SOURCE=nix: no such source in"),
        (
            {"LOGS": "{logs}", "SOURCE": "web", "FORMAT": "combined"},
            "has the format json, not FORMAT=combined",
        ),
        ({"LOGS": "{logs}", "FORMAT": "json", "HOURS": "3"}, "HOURS is for sample logs"),
        ({"LOGS": "{logs}", "FORMAT": "json", "CLICKS": "3"}, "CLICKS is for sample logs"),
        ({"LOGS": "{logs}.gone", "FORMAT": "json"}, "does not exist; expected a log file"),
    ],
)
def test_wrong_argument_is_one_line_with_the_value_and_what_was_expected(
    logs: Path, environment: dict[str, str], message: str
) -> None:
    arguments = {name: value.format(logs=logs) for name, value in environment.items()}

    with pytest.raises(ClickmillError) as error:
        checked_arguments(arguments)

    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.exit_code == 2


# --- landing --------------------------------------------------------------------------------------


def close(home: Home, source: str, *numbers: int) -> None:
    for number in numbers:
        folder = hour_folder(home.landing, source, hour(number))
        folder.mkdir(parents=True)
        (folder / SUCCESS).touch()


def test_only_sample_hours_that_are_not_closed_are_made(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert missing_sample_hours(home, 3) == [HourRange(hour(0), hour(3))]

    close(home, "web", 0, 2)
    hour_folder(home.landing, "web", hour(1)).mkdir(parents=True)  # begun, never closed

    assert missing_sample_hours(home, 5) == [HourRange(hour(1), hour(2)), HourRange(hour(3), hour(5))]
    assert missing_sample_hours(home, 1) == []


def test_closed_hours_are_those_with_the_mark(tmp_path: Path) -> None:
    home = Home(tmp_path)
    close(home, "web", 4, 30)
    close(home, "edge", 5)
    hour_folder(home.landing, "web", hour(6)).mkdir(parents=True)

    assert sorted(closed_hours(home.landing, "web")) == [hour(4), hour(30)]


def test_a_folder_that_names_no_hour_is_not_a_closed_hour(tmp_path: Path) -> None:
    home = Home(tmp_path)
    close(home, "web", 4)
    for day in ("0001-01-01", "9999-12-31", "today"):
        folder = home.landing / "web" / f"log_date={day}" / "log_hour=00"
        folder.mkdir(parents=True)
        (folder / SUCCESS).touch()

    assert list(closed_hours(home.landing, "web")) == [hour(4)]


def test_own_logs_with_stray_times_land_each_time_and_name_the_hours_to_run(tmp_path: Path, logs: Path) -> None:
    home = Home(tmp_path / "home")
    environment = os.environ | {"CLICKMILL_HOME": str(home.path)}
    ahead = datetime.now(UTC) + timedelta(days=1)
    times = ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "2026-03-01T04:00:00Z", ahead.isoformat()]
    logs.write_text("".join(f'{{"ts": "{time}", "url": "http://a/"}}\n' for time in times))
    arguments = checked_arguments({"LOGS": str(logs), "FORMAT": "json"})

    assert land_logs(home, arguments, environment) == [hour(4)]
    with logs.open("a") as file:
        file.write('{"ts": "9999-12-31T23:59:59Z"}\n{"ts": "2026-03-01T07:00:00Z"}\n')
    assert land_logs(home, arguments, environment) == [hour(4), hour(7)]
    logs.write_text("".join(logs.read_text().splitlines(keepends=True)[:3]))  # an older copy
    assert land_logs(home, arguments, environment) == []


def test_of_a_folder_what_lands_is_run(tmp_path: Path) -> None:
    home, folder = Home(tmp_path / "home"), tmp_path / "logs"
    environment = os.environ | {"CLICKMILL_HOME": str(home.path)}
    folder.mkdir()
    (folder / "access.json").write_text('{"ts": "2026-03-01T04:00:00Z", "url": "http://a/"}\n')
    (folder / "error.log").write_text("2026/03/01 04:00:00 [error] 7#7: no\n")
    arguments = checked_arguments({"LOGS": str(folder), "FORMAT": "json"})
    assert land_logs(home, arguments, environment) == [hour(4)]
    (folder / "access.json").unlink()
    with pytest.raises(ClickmillError, match="exit code 1"):
        land_logs(home, arguments, environment)


def test_sample_hours_are_broken_where_they_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, commands = Home(tmp_path), []
    monkeypatch.setattr(run_module.subprocess, "Popen", lambda command, cwd: commands.append(command))
    close(home, "web", *range(7))

    run_module._make_samples(home, checked_arguments({}), Console(file=io.StringIO()))
    (command,) = commands
    assert [part for part in command if part.startswith("--broken")] == ["--broken=2026-03-01T08=0.7"]

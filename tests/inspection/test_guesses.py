"""What is guessed of a log that no preset reads; a guess that says little is not sure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from include.settings import Settings
from spark_jobs.inspection.field_guesses import fields_of_records, guess_fields
from spark_jobs.inspection.inspection import inspect


@pytest.mark.parametrize("name", ["ClientRequestReferer", "http_referrer", "referer_url", "ref"])
def test_where_a_visitor_came_from_is_not_the_page(name: str) -> None:
    record = {"ts": "2026-03-10T12:30:00Z", name: "https://from.example/", "page_path": "/a"}
    guesses = guess_fields(fields_of_records([record]), lambda _: "iso8601")
    assert guesses["url"] == "page_path"


@pytest.mark.parametrize("request_line", ["GET /a HTTP/1.1", "GET /a HTTP/2", "POST /a b HTTP/2.0", "GET /a"])
def test_a_request_line_says_the_page(request_line: str) -> None:
    record = {"time": "2026-03-10T12:30:00Z", "request": request_line, "http_host": "shop.example.com"}
    guesses = guess_fields(fields_of_records([record]), lambda _: "iso8601")
    assert (guesses["request"], guesses["host"]) == ("request", "http_host")


X = '[10/Mar/2026:12:30:00 +0000] "GET /a HTTP/1.1" 200 5 "-" "Moz"'


@pytest.mark.parametrize(
    ("line", "preset"),
    [
        # Addresses that are nobody's, as in any test: the clients are in the list.
        (f'10.0.0.1 - - {X} "203.0.113.%d, 10.0.0.2"', "nginx_main"),
        # A word before a line is no host of it.
        (f"Mar 10 12:30:00 web1 nginx: 203.0.113.%d - - {X}", "combined"),
        (f"2026-03-10T12:30:00Z stdout F 203.0.113.%d - - {X}", "combined"),
    ],
)
def test_the_preset_that_finds_the_clients_is_meant(line: str, preset: str, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text("".join(f"{line % number}\n" for number in range(9)))
    inspection = inspect(log, Settings.from_environment())
    assert (inspection.is_sure, inspection.settings.get("preset")) == (True, preset)


@pytest.mark.parametrize(
    "lines",
    [
        # a log of files
        [json.dumps({"time": f"2026-03-10T12:30:0{n}Z", "level": "info", "path": f"/tmp/{n}"}) for n in range(9)],
        # a table without a header: its first line is a click
        [f"HIT;{1773145800 + n};https://shop.example.com/{n};8.8.8.8" for n in range(9)],
        # whose address is which, and a host where OVH has the client
        [f"198.51.100.{n} 203.0.113.7 - {X}" for n in range(9)],
        [f"shop.example.com 203.0.113.{n} - {X}" for n in range(9)],
    ],
    ids=["a log of files", "no header", "two addresses", "swapped"],
)
def test_what_may_be_something_else_is_not_sure(lines: list[str], tmp_path: Path) -> None:
    log = tmp_path / "what.log"
    log.write_text("\n".join(lines) + "\n")
    assert not inspect(log, Settings.from_environment()).is_sure


def test_a_time_that_no_click_has_is_no_time(tmp_path: Path) -> None:
    log = tmp_path / "clicks.json"
    times = [1773145800000, *range(1773145801, 1773145821)]
    log.write_text("".join(f'{{"ts": {time}, "url": "http://shop.test/{time}", "ip": "8.8.8.8"}}\n' for time in times))
    inspection = inspect(log, Settings.from_environment())
    assert {outcome.reason: outcome.lines for outcome in inspection.outcomes} == {None: 20, "time_out_of_range": 1}


def test_an_empty_file_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    assert not inspect(tmp_path / "empty.log", Settings.from_environment()).is_sure

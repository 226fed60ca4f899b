"""Rows and landed lines find each other by their places, where nothing else joins them: the key of the day is gone."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

import pytest

from include.errors import ClickmillError
from include.hours import Hour
from include.landing import look_at
from include.settings import Settings
from include.sources import load_sources
from include.tables import CLICKS, QUARANTINED_CLICKS, Table
from spark_jobs.erasure.requests import Requests
from spark_jobs.lake.lake import Lake
from spark_jobs.lines.arrivals import LineParser, read_files, unique_ids
from spark_jobs.lines.read_lines import LandedFile, ReadFile
from tests.erasure.erased_lake import certificate, erase
from tests.support.killed_runs import Killed, killed_after
from tests.support.log_files import content_of
from tests.support.temporary_lake import TemporaryLake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOURS = ("2026-03-01T10", "2026-03-01T11")
END = "2026-03-01T12"
#: One client, as servers write it; another with the same browser in the same second; a third.
HERS, ALIKE, OTHER = ("2001:DB8:0:0:0:0:0:7", "2001:db8::7", "2001:db8::7"), "198.51.100.9", "203.0.113.5"


def lines(hour: str) -> list[str]:
    """Of each client some clicks, and of two a line that is none; the first two cannot be told apart but by place."""

    def of(address: str, minute: int, page: str, agent: str = "one") -> str:
        time = f"01/Mar/2026:{hour[-2:]}:{minute:02d}:00 +0000"
        return f'{address} - - [{time}] "GET /{page} HTTP/1.1" 200 5 "-" "Mozilla/5.0 ({agent})"'

    return [
        of(ALIKE, 1, "page"),
        of(HERS[0], 1, "page"),
        f"{HERS[1]} is cut off",
        of(OTHER, 2, "other", "two"),
        of(HERS[2], 3, "secret"),
        f"{OTHER} is cut off",
        of(ALIKE, 3, "secret"),
        of(ALIKE, 4, "page"),
    ]


def content(hour: str, *, without: tuple[str, ...] = ()) -> bytes:
    return "".join(f"{line}\n" for line in lines(hour) if not line.startswith(without or "#")).encode()


def landed_lines(lake: TemporaryLake) -> list[str]:
    folder = lake.settings.landing / "access"
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file.name[0] not in "._")
    return [line for file in files for line in content_of(file).decode().splitlines()]


def ingest(lake: TemporaryLake, hour: Hour) -> None:
    """What an ingest leaves of an hour's files, without Spark: no counts."""
    parser = LineParser.of(load_sources(lake.settings)["access"], lake.settings)
    done: list[ReadFile] = []
    files = [LandedFile(path, hour) for path in look_at(lake.settings.landing, "access", hour).files]
    rows = [row for table in read_files(files, parser, unique_ids, done) for row in table.to_pylist()]
    clicks = [row for row in rows if row["reason"] is None]
    for table, its in ((CLICKS, clicks), (QUARANTINED_CLICKS, [row for row in rows if row["reason"]])):
        of_hour = {"source": "access", "click_date": hour.day, "click_hour": hour.hour}
        named = [{name: (row | of_hour)[name] for name in table.column_names} for row in its]
        Lake(None, lake.settings).append_rows(table, named)


@pytest.fixture(autouse=True)
def _rows_come_two_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of a large log hour come some thousands at a time."""
    monkeypatch.setattr("spark_jobs.lake.copied_files._ROWS", 2)


@pytest.fixture
def access_lake(settings: Settings) -> TemporaryLake:
    """Two hours ingested, and the key of their day destroyed."""
    lake = TemporaryLake(cast("SparkSession", None), settings)
    for hour in HOURS:
        lake.land(hour, {"a.log.gz": content(hour)}, source="access")
        ingest(lake, Hour.parse(hour))
    shutil.rmtree(settings.visitor_keys)
    return lake


def rows_of(lake: TemporaryLake, table: Table) -> list[dict[str, Any]]:
    return Lake(None, lake.settings).read_rows(table, table.column_names, [])


def expected(*, without: tuple[str, ...]) -> list[str]:
    return [line for hour in HOURS for line in lines(hour) if not line.startswith(without)]


def visitor_of(lake: TemporaryLake, number: int) -> str:
    (visitor,) = {row["visitor_id"] for row in rows_of(lake, CLICKS) if row["line"] == number}
    return str(visitor)


@pytest.mark.parametrize("kills", [(), (1, 2, 3, 4, 5, 6, 8)])
def test_an_address_takes_the_rows_of_its_lines(access_lake: TemporaryLake, kills: tuple[int, ...]) -> None:
    lake = access_lake
    visitor = visitor_of(lake, 5)
    assert visitor == visitor_of(lake, 2) != visitor_of(lake, 1)
    # Of one hour the lines are gone: its rows are known by the visitor that the others have.
    shutil.rmtree(lake.settings.landing / "access" / "log_date=2026-03-01" / "log_hour=11")
    before = Counter(row["visitor_id"] for row in rows_of(lake, CLICKS))
    asked = Requests.of(addresses=["2001:0db8::0007"])
    for commits in (*kills, None):
        try:
            with killed_after(commits):
                erase(lake, asked)
            break
        except Killed:
            continue
    record = certificate(lake)
    assert record["state"] == "completed"
    assert Counter(row["visitor_id"] for row in rows_of(lake, CLICKS)) == before - Counter({visitor: 4})
    gone = tuple(set(HERS))
    assert landed_lines(lake) == [line for line in lines(HOURS[0]) if not line.startswith(gone)]
    # Of the quarantined lines of the first hour hers is gone; of the other only the network is known.
    raw = Counter((row["log_hour"], row["raw"]) for row in rows_of(lake, QUARANTINED_CLICKS))
    assert raw == {
        (10, "203.0.113.0 is cut off"): 1,
        (11, "203.0.113.0 is cut off"): 1,
        (11, "2001:db8:: is cut off"): 1,
    }
    # Rows have the places that the lines have now: the next one asked for is found by them.
    numbers = {(row["visitor_id"], row["line"]) for row in rows_of(lake, CLICKS) if row["log_hour"] == 10}
    assert sorted(line for _, line in numbers) == [1, 2, 4, 5]


def test_a_visitor_takes_the_landed_lines_of_its_rows_and_nobody_elses(access_lake: TemporaryLake) -> None:
    lake = access_lake
    hers, alike, other = visitor_of(lake, 2), visitor_of(lake, 1), visitor_of(lake, 4)
    # The files have another name, and one of them its lines in another order.
    for hour in HOURS:
        folder = lake.settings.landing / "access" / "log_date=2026-03-01" / f"log_hour={hour[-2:]}"
        (folder / "a.log.gz").rename(folder / ("a.log.gz" if hour == HOURS[0] else "b.log.gz"))
    erase(lake, Requests.of([other]))
    left = [line for hour in HOURS for line in lines(hour) if not line.startswith(f"{OTHER} -")]
    assert landed_lines(lake) == left
    # In the second hour hers and another's click are alike, and their file is not the one that was read.
    with pytest.raises(ClickmillError, match=r"not complete: .*access 2026-03-01T11; erase by the address"):
        erase(lake, Requests.of([hers]))
    (record,) = [record for record in certificates(lake) if record["state"] == "begun"]
    assert record["unjoined_hours"] == {"access": [HOURS[1]]}
    assert {row["visitor_id"] for row in rows_of(lake, CLICKS)} == {alike}
    first = [line for line in lines(HOURS[0]) if not line.startswith((f"{OTHER} -", f"{HERS[0]} -", f"{HERS[2]} -"))]
    assert landed_lines(lake)[: len(first)] == first
    with pytest.raises(ClickmillError, match="not complete"):
        erase(lake, Requests.of([hers]))
    # By the address the rest goes.
    erase(lake, Requests.of(addresses=["2001:db8::7"]))
    assert [line for line in landed_lines(lake) if line.startswith(tuple(HERS))] == []
    assert Counter(landed_lines(lake)) == Counter(
        line for line in expected(without=HERS) if not line.startswith(f"{OTHER} -")
    )
    # Then no line is left of which the row has gone.
    erase(lake, Requests.of([hers]))
    assert {record["state"] for record in certificates(lake)} == {"completed"}


def certificates(lake: TemporaryLake) -> list[dict[str, object]]:
    return [json.loads(file.read_text()) for file in (lake.settings.reports / "erasures").glob("*.json")]

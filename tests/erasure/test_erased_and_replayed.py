"""Lines that a replay has recovered stay recovered, and no others are, when lines of their files are erased."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from include.hours import Hour, HourRange
from include.tables import CLICKS, REPLAYED_LINES
from spark_jobs.erasure.requests import Requests
from spark_jobs.replay import job as replay_job
from tests.erasure.erased_lake import certificate, comparable, erase, files_with
from tests.support.killed_runs import Killed, killed_after
from tests.support.temporary_lake import TemporaryLake, assert_same_tables, click

pytestmark = [pytest.mark.spark, pytest.mark.slow]

VISITOR, OTHER = "visitor-one", "visitor-two"
HOURS = ("2026-03-01T10", "2026-03-01T11")
END = "2026-03-01T12"
#: Whose lines, in their order; a small letter: one that a rule repairs.
FILES = {"a.json": "VvOoVVooVo", "b.json": "OoO", "c.json": "VOO"}


def line(hour: str, file: str, number: int, whose: str) -> bytes:
    made = click(
        f"{file}-{number}-{hour}", f"{hour}:{number:02}:00Z", visitor_id={"V": VISITOR, "O": OTHER}[whose.upper()]
    )
    return made if whose.isupper() else b"day=" + made


def landed(hour: str, *, without: str = "") -> dict[str, bytes]:
    return {
        file: b"".join(
            line(hour, file, number, whose) for number, whose in enumerate(lines) if whose.upper() != without
        )
        for file, lines in FILES.items()
    }


def ingest(lake: TemporaryLake) -> None:
    lake.run("ingest", HOURS[0], END)


def replay(lake: TemporaryLake) -> None:
    hours = HourRange(Hour.parse(HOURS[0]), Hour.parse(END))
    request = replay_job.Request("web", hours, rule="replace(raw, 'day=', '')")
    replay_job.replay(lake.spark, lake.settings, request, by="Ada", because="the proxy is fixed")


def by_any_replay(lake: TemporaryLake) -> dict[str, list[dict[str, Any]]]:
    """A replay's id and time are its own."""
    tables = comparable(lake)
    del tables["replay_outcomes"]
    for rows in tables.values():
        for row in rows:
            if row.get("replay_id"):
                row["replay_id"] = "some"
    return tables


def test_recovered_lines_stay_recovered_when_others_before_them_are_erased(
    lake: TemporaryLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_job, "_count", lambda *_: [])
    for hour in HOURS:
        lake.land(hour, landed(hour))
    ingest(lake)
    replay(lake)
    fresh = lake.copy(lake.settings.home.parent / "fresh")
    # Killed after it has moved the places of the first hour, and of the second.
    for commits in (2, 3, None):
        try:
            with killed_after(commits):
                erase(lake, Requests.of([VISITOR]))
        except Killed:
            continue
    assert certificate(lake)["state"] == "completed"
    assert files_with(lake.settings.home, VISITOR) == []

    shutil.rmtree(fresh.settings.lake)
    for hour in HOURS:
        fresh.land(hour, landed(hour, without="V"))
    ingest(fresh)
    replay(fresh)
    assert_same_tables(by_any_replay(lake), by_any_replay(fresh))
    assert sum(row["replay_id"] is not None for row in lake.rows(CLICKS)) == 10 == len(lake.rows(REPLAYED_LINES))
    # And so in a later ingest.
    before = lake.tables()
    ingest(lake)
    assert_same_tables(lake.tables(), before)

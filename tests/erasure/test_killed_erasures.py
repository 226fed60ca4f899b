"""An erasure that is killed again and again, each time after another commit, ends as one that is not."""

from __future__ import annotations

import shutil

import pytest

from include.hours import Hour, HourRange
from include.tables import QUALITY_RESULTS
from spark_jobs.erasure.requests import Requests
from spark_jobs.replay import job as replay_job
from spark_jobs.replay.job import Request
from tests.erasure.erased_lake import but_of_replays, certificate, erase, files_with
from tests.support.fault_rounds import some_of
from tests.support.killed_runs import Killed, killed_after
from tests.support.temporary_lake import TemporaryLake, assert_same_tables, click

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HOURS = ("2026-03-01T10", "2026-03-01T11", "2026-03-01T13")
VISITOR, OTHER = "visitor-one", "visitor-two"
#: What the event ids of each begin with.
EVENTS = {VISITOR: "event-of-the-first", OTHER: "event-of-the-second"}


def lines(hour: str, *visitors: str, day: bytes = b"") -> bytes:
    """A click of each visitor; one of the hour before; one with ``day`` before it; a line that is none."""
    before = f"{hour[:11]}{int(hour[11:]) - 1:02d}"
    parts = []
    for visitor in visitors:
        of_visitor = [
            click(f"{EVENTS[visitor]}-{hour}", f"{hour}:05:00Z", "http://shop.test/a", visitor_id=visitor),
            click(f"{EVENTS[visitor]}-late-{hour}", f"{before}:05:00Z", "http://shop.test/b", visitor_id=visitor),
            day + click(f"{EVENTS[visitor]}-of-day-{hour}", f"{hour}:07:00Z", "http://shop.test/c", visitor_id=visitor),
            f"no JSON of {visitor}\n".encode(),
        ]
        # The number that a repaired line has in the end is none that one had before.
        parts += of_visitor[::-1] if visitor == VISITOR else of_visitor
    return b"".join(parts)


def run_all(lake: TemporaryLake) -> None:
    for start, end in ((HOURS[0], "2026-03-01T12"), (HOURS[2], "2026-03-01T14")):
        lake.run_jobs(start, end, "ingest", "aggregate", "validate", "publish")


def test_killed_after_any_commit_it_goes_on(lake: TemporaryLake) -> None:
    for hour in HOURS:
        lake.land(hour, {"a.json.gz": lines(hour, VISITOR, OTHER, day=b"day="), "b.json": b""})
    run_all(lake)
    # The lines that are repaired are known by their numbers, and those before them go.
    rule = Request("web", HourRange(Hour.parse(HOURS[0]), Hour.parse("2026-03-01T14")), rule="ltrim(raw, 'day=')")
    replay_job.replay(lake.spark, lake.settings, rule, by="Ada", because="the proxy puts day= before lines")
    # Of one hour the files are gone.
    for file in lake.land(HOURS[1], {}).iterdir():
        file.unlink()
    # Results of checks show such clicks, by their event ids.
    assert any(EVENTS[VISITOR] in example for row in lake.rows(QUALITY_RESULTS) for example in row["examples"])
    kills, tries = 0, some_of((1, 2, 3, 4, 5, 6, 8, 11, 15, 20), 6)
    for commits in tries:
        try:
            with killed_after(commits):
                erase(lake, Requests.of([VISITOR]))
        except Killed:
            kills += 1
        else:
            break
    assert kills >= len(tries) - 2
    if certificate(lake)["state"] != "completed":
        erase(lake, Requests.of([VISITOR]))
    assert certificate(lake)["state"] == "completed"
    assert files_with(lake.settings.home, VISITOR, EVENTS[VISITOR]) == []
    fresh = TemporaryLake(lake.spark, lake.settings).copy(lake.settings.home.parent / "fresh")
    for folder in ("lake", "reports", "run"):
        shutil.rmtree(fresh.settings.home / folder)
    for hour in HOURS:
        fresh.land(hour, {"a.json.gz": lines(hour, OTHER), "b.json": b""})
    run_all(fresh)
    assert_same_tables(but_of_replays(lake), but_of_replays(fresh))

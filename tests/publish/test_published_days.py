"""Published days: sums of what is published of their hours, and whether all hours of a day are there."""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import Any

import pytest

from include.days import days_of
from include.errors import QualityError
from include.hours import Hour, HourRange
from include.tables import PUBLISHED, PUBLISHED_CLICKS_BY_COUNTRY_DAILY, PUBLISHED_CLICKS_BY_URL_DAILY
from spark_jobs.aggregate import days
from spark_jobs.lake.lake import Lake
from spark_jobs.publish import decide_held
from tests.support.killed_runs import Killed, after_each_commit
from tests.support.temporary_lake import TemporaryLake, click

pytestmark = pytest.mark.spark

DAY, END, NEXT = "2026-03-01T00", "2026-03-02T00", "2026-03-02T01"
HELD = "2026-03-01T05"


def lines_of(hour: str, clicks: int) -> bytes:
    return b"".join(click(f"{hour}-{n}", f"{hour}:{n:02d}:00Z", visitor_id=f"v{n}") for n in range(clicks))


def day_of(lake: TemporaryLake, day: str = "2026-03-01") -> dict[str, Any]:
    """The one row of the day, which both tables have, with a key each."""
    rows = []
    for table in (PUBLISHED_CLICKS_BY_URL_DAILY, PUBLISHED_CLICKS_BY_COUNTRY_DAILY):
        (row,) = [row for row in lake.rows(table) if str(row["click_date"]) == day]
        rows.append({name: value for name, value in row.items() if name not in ("url", "country_code")})
    assert rows[0] == rows[1]
    return rows[0]


def presence(lake: TemporaryLake, day: str = "2026-03-01") -> tuple[int, int, bool]:
    row = day_of(lake, day)
    return row["click_count"], row["hours_present"], row["is_final"]


def run_held(lake: TemporaryLake, hour: str) -> None:
    for job in ("ingest", "aggregate"):
        lake.run(job, hour)
    with pytest.raises(QualityError):
        lake.run("validate", hour)
    lake.run("publish", hour)


def decide(lake: TemporaryLake, decision: str) -> None:
    decide_held.decide(lake.spark, lake.settings, decide_held.Decision(Hour.parse(HELD), decision, "Ada", "seen"))


@pytest.fixture(scope="module")
def lake(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    """A day of which three hours have clicks, and all but the last have landed and are published."""
    lake = make_lake("published-days")
    for number in range(23):
        hour = Hour.parse(DAY).plus(number)
        lake.land(str(hour), {"a.json": lines_of(str(hour), 3)} if hour.hour in (4, 5, 6) else {})
    lake.run_all(DAY, "2026-03-01T23")
    return lake


def test_a_day_is_final_when_all_its_hours_are_there_and_published(lake: TemporaryLake) -> None:
    assert presence(lake) == (9, 23, False)
    assert day_of(lake)["visitor_count"] == 3, "they came in three hours"
    lake.run("ingest", "2026-03-01T23", allow_missing=True)
    lake.run("publish", HELD)
    assert presence(lake) == (9, 23, False), "accounted for, as missing"
    lake.land("2026-03-01T23", {})
    lake.run_all("2026-03-01T23")
    assert presence(lake) == (9, 24, True), "an hour without clicks is there too"


def test_a_day_with_a_held_hour_is_not_final_and_keeps_what_was_published(lake: TemporaryLake) -> None:
    lake.land(HELD, {"a.json": lines_of(HELD, 1) + b"nonsense\n" * 9})
    run_held(lake, HELD)
    assert presence(lake) == (9, 23, False)
    decide(lake, "drop")
    assert presence(lake) == (9, 24, True), "dropped: what was published stays"
    run_held(lake, HELD)
    assert presence(lake) == (9, 24, True), "for good"
    decide(lake, "release")
    assert presence(lake) == (9, 23, False), "held again"
    decide(lake, "publish")
    assert presence(lake) == (7, 24, True)


def test_a_late_click_changes_its_day_and_not_the_one_in_which_it_landed(lake: TemporaryLake) -> None:
    late = click("late", "2026-03-01T22:30:00Z", visitor_id="v0")
    lake.land(END, {"a.json": lines_of(END, 2) + late})
    lake.run("ingest", END)
    # The late click waits to be counted, and the hour is not as it is to be.
    lake.run("publish", HELD)
    assert presence(lake) == (7, 23, False)
    for job in ("aggregate", "validate", "publish"):
        lake.run(job, END)
    assert presence(lake) == (8, 24, True)
    assert presence(lake, "2026-03-02") == (2, 1, False)


def test_days_whose_files_are_large_are_computed_one_after_the_other(
    lake: TemporaryLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = days_of(["UTC", "Europe/Berlin"], HourRange(Hour.parse(DAY), Hour.parse(NEXT)))
    tables = list(PUBLISHED)
    assert list(days.days_in_parts(Lake(lake.spark, lake.settings), tables, hours)) == [hours]
    monkeypatch.setattr(days, "MOST_BYTES", 1)
    # And written by tasks.
    monkeypatch.setattr(days, "FEW_BYTES", -1)
    assert list(days.days_in_parts(Lake(lake.spark, lake.settings), tables, hours)) == [[day] for day in hours]
    lake.run("publish", DAY, NEXT)
    assert (presence(lake), presence(lake, "2026-03-02")) == ((8, 24, True), (2, 1, False))


def test_a_publish_killed_between_hours_and_days_is_put_right_by_the_retry(lake: TemporaryLake) -> None:
    lake.land(END, {"a.json": lines_of(END, 5)})
    for job in ("ingest", "aggregate", "validate"):
        lake.run(job, END)

    def kill(table: str) -> None:
        if table == "published_clicks_by_country_hourly":
            raise Killed

    with pytest.raises(Killed), after_each_commit(kill):
        lake.run("publish", END)
    assert presence(lake, "2026-03-02") == (2, 1, False)
    lake.run("publish", END)
    assert presence(lake, "2026-03-02") == (5, 1, False)


def test_a_day_is_exported_without_its_sketches(lake: TemporaryLake) -> None:
    name = PUBLISHED_CLICKS_BY_COUNTRY_DAILY.name
    folder = lake.settings.reports / "exports" / name / "time_zone=UTC" / "click_date=2026-03-02"
    assert {file.name for file in folder.iterdir()} == {f"{name}.csv", f"{name}.parquet"}
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as lines:
        (row,) = csv.DictReader(lines)
    assert row == {
        "time_zone": "UTC", "click_date": "2026-03-02", "country_code": "DE", "click_count": "5",
        "bot_click_count": "0", "visitor_count": "5", "hours_in_day": "24", "hours_present": "1", "is_final": "false",
    }  # fmt: skip

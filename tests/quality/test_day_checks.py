"""Days that are no sums of their hours are found, and hours that another run has yet to add up are left to it."""

from __future__ import annotations

import math
from datetime import date

import pytest

from expectations.facts import as_facts
from expectations.frames import click_hour_frame
from include.buckets import Layout
from include.errors import QualityError
from include.hours import Hour
from include.tables import CLICKS_BY_URL_HOURLY, QUALITY_RESULTS
from tests.support.day_faults import DAY_FAULTS
from tests.support.temporary_lake import TemporaryLake, click

HOURS = ("2026-03-01T05", "2026-03-01T06")
LAYOUTS = {"url": (CLICKS_BY_URL_HOURLY, Layout(4, 4, "STRING"))}


@pytest.mark.spark
def test_a_day_that_is_no_sum_of_its_hours_holds_them_until_they_are_counted_again(lake: TemporaryLake) -> None:
    for hour in HOURS:
        lines = (click(f"{hour}-{n}", f"{hour}:{n:02d}:00Z", f"http://shop.test/{n % 2}") for n in range(4))
        lake.land(hour, {"a.json": b"".join(lines)})
    both = HOURS[0], "2026-03-01T07"
    for job in ("ingest", "aggregate", "validate"):
        lake.run(job, *both)
    for fault in DAY_FAULTS:
        assert fault.plant
        fault.plant(lake, Hour.parse(HOURS[0]))
    with pytest.raises(QualityError):
        lake.run("validate", *both)
    failed = {
        (row["partition"], f"{row['suite']}.{row['check_id']}"): (row["severity"], row["observed"])
        for row in lake.rows(QUALITY_RESULTS)
        if row["outcome"] == "fail"
    }
    assert failed == {(hour, fault.check): (fault.severity, fault.observed) for hour in HOURS for fault in DAY_FAULTS}
    assert "2 held" in lake.run("publish", *both)[0]
    # Counting one of the hours again computes the whole day.
    lake.run("aggregate", HOURS[1])
    lake.run("validate", *both)
    assert "2 click hours published" in lake.run("publish", *both)[0]


@pytest.mark.parametrize(
    ("hour_counted", "hours_counted", "day_counted", "differing_days"),
    [
        (10, 10, 11, 1),
        # Another run counted an hour of the day since, and has yet to compute the day.
        (10, 12, 11, None),
        # This very run's hours are newer than the day: it was ended in between.
        (12, 12, 11, 1),
        # The day has never been computed.
        (10, 10, None, 1),
    ],
)
def test_a_day_that_another_run_has_yet_to_compute_is_not_judged(
    hour_counted: int, hours_counted: int, day_counted: int | None, differing_days: int | None
) -> None:
    hour = {
        "key": "url", "click_date": date(2026, 3, 1), "click_hour": 5, "clicks": 4, "counted_micros": hour_counted,
    }  # fmt: skip
    day = {
        "key": "url", "time_zone": "Europe/Berlin", "day": date(2026, 3, 1), "keys_that_differ": 1, "hour_clicks": 4,
        "day_clicks": 3, "hours_counted_micros": hours_counted, "day_counted_micros": day_counted,
    }  # fmt: skip
    facts = as_facts({"counts": [hour], "days": [day]})
    (row,) = click_hour_frame([Hour.parse("2026-03-01T05")], facts, LAYOUTS, []).to_dict("records")
    value = row["url_days_that_differ"]
    assert (None if value is None or math.isnan(value) else value) == differing_days
    if differing_days:
        assert row["url_days"] == "2026-03-01 Europe/Berlin has 3 clicks, its hours 4; keys that differ: 1"

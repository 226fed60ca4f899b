"""Days of time zones: which hours they have, across clock changes, and which zones are refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from include import days
from include.days import (
    Day,
    Grain,
    days_in,
    days_of,
    first_day,
    hours_of,
    hours_of_two_days,
    name_of,
)
from include.errors import UsageError
from include.hours import Hour
from include.settings import Settings


@pytest.mark.parametrize(
    ("zone", "day", "first", "end"),
    [
        ("UTC", "2026-03-29", "2026-03-29T00", "2026-03-30T00"),
        ("Europe/Berlin", "2026-03-28", "2026-03-27T23", "2026-03-28T23"),
        ("Europe/Berlin", "2026-03-29", "2026-03-28T23", "2026-03-29T22"),
        ("Europe/Berlin", "2026-10-25", "2026-10-24T22", "2026-10-25T23"),
        # Clocks went forward at midnight: the day began at 01:00.
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04T03", "2018-11-05T02"),
        # Clocks go back at 01:00 to midnight: the day begins at the first midnight.
        ("America/Havana", "2026-11-01", "2026-11-01T04", "2026-11-02T05"),
    ],
)
def test_a_day_has_the_hours_between_its_midnights(zone: str, day: str, first: str, end: str) -> None:
    hours = Day(zone, date.fromisoformat(day)).hours
    assert (str(hours.start), str(hours.end)) == (first, end)
    assert {str(Day.containing(zone, hour.start).date) for hour in hours} == {day}


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Pacific/Apia", "Australia/Sydney", "UTC"])
def test_each_hour_of_a_year_is_in_exactly_one_day(zone: str) -> None:
    first = date(2026, 1, 1)
    of_days = [hour for n in range(365) for hour in Day(zone, first + timedelta(n)).hours]
    assert [hour.number for hour in of_days] == list(range(of_days[0].number, of_days[0].number + 8760))


def test_hours_give_the_days_of_every_zone() -> None:
    days = days_of(["UTC", "Europe/Berlin"], [Hour.parse("2026-03-01T23"), Hour.parse("2026-03-01T22")])
    assert [str(day) for day in days] == ["2026-03-01 Europe/Berlin", "2026-03-02 Europe/Berlin", "2026-03-01 UTC"]
    assert len(hours_of(days)) == 24 + 23 + 1


@pytest.mark.parametrize(
    ("zones", "message"),
    [
        ('["Europe/Berlim"]', "time_zones.0: no such time zone; expected a name such as"),
        ('["../../etc/passwd"]', "no such time zone"),
        ('["UTC", "UTC"]', "time_zones: UTC is named twice"),
        ("[]", "time_zones: "),
        (
            '["UTC", "Asia/Kolkata"]\npublication.smallest_visitors = 3',
            "publication: days of Asia/Kolkata, of time_zones, begin within an hour, UTC",
        ),
    ],
)
def test_a_time_zone_whose_days_cannot_be_counted_is_refused_in_one_line(
    settings: Settings, zones: str, message: str
) -> None:
    settings.pipeline_file.write_text(f"time_zones = {zones}\n")
    with pytest.raises(UsageError, match=message) as raised:
        _ = settings.pipeline
    assert "\n" not in str(raised.value)


def test_a_time_zone_that_is_not_quarters_of_an_hour_from_utc_is_refused(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Liberia's time was 44.5 minutes behind until 1972; since 2000 there is none like that.
    monkeypatch.setattr(days, "_SINCE", datetime(1971, 1, 1, tzinfo=UTC))
    settings.pipeline_file.write_text('time_zones = ["Africa/Monrovia"]\n')
    with pytest.raises(UsageError, match=r"its offset from UTC is not quarters of an hour \(-004430 on 1970-12-31\)"):
        _ = settings.pipeline


@pytest.mark.parametrize(
    ("zone", "day", "quarters", "hours"),
    [
        ("Asia/Kolkata", "2026-03-02", {"2026-03-01T18": [2, 3], "2026-03-02T18": [0, 1]}, 25),
        ("Asia/Kathmandu", "2026-03-02", {"2026-03-01T18": [1, 2, 3], "2026-03-02T18": [0]}, 25),
        ("America/St_Johns", "2026-03-08", {"2026-03-08T03": [2, 3], "2026-03-09T02": [0, 1]}, 24),
        # Clocks go back by half an hour: the day has 24.5 hours, and the first of them is whole.
        ("Australia/Lord_Howe", "2026-04-05", {"2026-04-05T13": [0, 1]}, 25),
        ("Australia/Lord_Howe", "2026-04-06", {"2026-04-05T13": [2, 3], "2026-04-06T13": [0, 1]}, 25),
        ("Australia/Lord_Howe", "2026-10-04", {"2026-10-03T13": [2, 3]}, 24),
        ("Australia/Lord_Howe", "2026-12-01", {}, 24),
        ("Asia/Tehran", "2022-03-22", {"2022-03-21T20": [2, 3], "2022-03-22T19": [0, 1]}, 24),
        ("Europe/Berlin", "2026-03-29", {}, 23),
    ],
)
def test_a_day_has_quarters_of_the_hours_within_which_it_begins_and_ends(
    zone: str, day: str, quarters: dict[str, list[int]], hours: int
) -> None:
    of = Day(zone, date.fromisoformat(day))
    assert {str(hour): list(own) for hour, own in of.quarters.items()} == quarters
    assert len(of.hours) == hours
    # Each of them is of two days, and of no other.
    for hour in map(Hour.parse, quarters):
        assert of in days_of([zone], [hour])
        assert len(days_of([zone], [hour])) == 2
    assert {hour.hour for hour in of.quarters} <= hours_of_two_days([zone])


@pytest.mark.parametrize(
    ("zone", "first"),
    [
        ("Australia/Lord_Howe", "2026-01-01"),
        ("Pacific/Chatham", "2026-01-01"),
        ("Australia/Adelaide", "2026-01-01"),
        # Clocks went back a minute after midnight, to the day before.
        ("America/St_Johns", "2006-01-01"),
        ("America/Goose_Bay", "2006-01-01"),
    ],
)
def test_each_quarter_of_a_year_is_in_exactly_one_day(zone: str, first: str) -> None:
    quarters = [
        hour.number * 4 + quarter
        for number in range(365)
        for of in [Day(zone, date.fromisoformat(first) + timedelta(number))]
        for hour in of.hours
        for quarter in of.quarters.get(hour, range(4))
    ]
    assert quarters == list(range(quarters[0], quarters[0] + len(quarters)))
    begin = datetime.fromtimestamp(quarters[0] * 900, UTC)
    for number in range(0, len(quarters), 3):
        moment = begin + number * timedelta(minutes=15)
        of = Day.containing(zone, moment)
        assert of.start <= moment < of.end


def test_hours_of_two_days_are_those_of_zones_that_are_not_whole_hours_from_utc() -> None:
    assert hours_of_two_days(["UTC", "Europe/Berlin", "Pacific/Apia"]) == frozenset()
    assert hours_of_two_days(["Asia/Kolkata", "Asia/Kathmandu"]) == {18}
    assert hours_of_two_days(["Australia/Lord_Howe", "America/St_Johns"]) == {13, 2, 3}


@pytest.mark.parametrize(
    ("day", "grain", "first", "name", "days"),
    [
        ("2026-03-01", "day", "2026-03-01", "2026-03-01", 1),
        ("2026-03-01", "week", "2026-02-23", "2026-W09", 7),
        ("2027-01-03", "week", "2026-12-28", "2026-W53", 7),
        ("2024-12-30", "week", "2024-12-30", "2025-W01", 7),
        ("2028-02-29", "month", "2028-02-01", "2028-02", 29),
        ("2026-12-31", "month", "2026-12-01", "2026-12", 31),
    ],
)
def test_periods_are_those_of_iso_8601(day: str, grain: Grain, first: str, name: str, days: int) -> None:
    begin = first_day(date.fromisoformat(day), grain)
    assert (begin.isoformat(), name_of(begin, grain), days_in(begin, grain)) == (first, name, days)

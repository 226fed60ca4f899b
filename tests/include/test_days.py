"""Days of time zones: which hours they have, across clock changes, and which zones are refused."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from include.days import Day, Grain, days_in, days_of, days_predicate, first_day, hours_of, name_of
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
    assert {str(Day.containing(zone, hour).date) for hour in hours} == {day}


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Pacific/Apia", "Australia/Sydney", "UTC"])
def test_each_hour_of_a_year_is_in_exactly_one_day(zone: str) -> None:
    first = date(2026, 1, 1)
    of_days = [hour for n in range(365) for hour in Day(zone, first + timedelta(n)).hours]
    assert [hour.number for hour in of_days] == list(range(of_days[0].number, of_days[0].number + 8760))


def test_hours_give_the_days_of_every_zone_and_a_predicate_names_them() -> None:
    days = days_of(["UTC", "Europe/Berlin"], [Hour.parse("2026-03-01T23"), Hour.parse("2026-03-01T22")])
    assert [str(day) for day in days] == ["2026-03-01 Europe/Berlin", "2026-03-02 Europe/Berlin", "2026-03-01 UTC"]
    assert len(hours_of(days)) == 24 + 23 + 1
    assert days_predicate(days) == (
        "(time_zone = 'Europe/Berlin' AND click_date IN (DATE'2026-03-01', DATE'2026-03-02')) OR "
        "(time_zone = 'UTC' AND click_date IN (DATE'2026-03-01'))"
    )
    assert days_predicate([]) == "false"


@pytest.mark.parametrize(
    ("zones", "said"),
    [
        ('["Europe/Berlim"]', "time_zones.0: no such time zone; expected a name such as"),
        ('["../../etc/passwd"]', "no such time zone"),
        ('["UTC", "Asia/Kolkata"]', r"time_zones.1: its offset from UTC is not whole hours \(\+0530"),
        ('["Australia/Lord_Howe"]', "its offset from UTC is not whole hours"),
        ('["UTC", "UTC"]', "time_zones: UTC is named twice"),
        ("[]", "time_zones: "),
    ],
)
def test_a_time_zone_whose_days_cannot_be_counted_is_refused_in_one_line(
    settings: Settings, zones: str, said: str
) -> None:
    settings.pipeline_file.write_text(f"time_zones = {zones}\n")
    with pytest.raises(UsageError, match=said) as raised:
        _ = settings.pipeline
    assert "\n" not in str(raised.value)


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

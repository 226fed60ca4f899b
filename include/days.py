"""Days of a time zone, and the hours, UTC, that they have: 24, or 23 and 25 where clocks change.

Weeks are those of ISO 8601, from Monday on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator

from include.hours import Hour, HourRange

#: Since then the offset of a time zone must be whole hours: an hour's counts cannot be split between two days.
_SINCE, _UNTIL = datetime(2000, 1, 1, tzinfo=UTC), datetime(2040, 1, 1, tzinfo=UTC)
_HALF_MONTH = timedelta(days=15)


def _checked_time_zone(name: str) -> str:
    """The name, if days of the zone are whole hours.

    Raises:
        ValueError: if there is no such zone, or its offset from UTC is not whole hours.
    """
    try:
        zone = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("no such time zone; expected a name such as UTC or Europe/Berlin") from None
    for number in range((_UNTIL - _SINCE) // _HALF_MONTH):
        moment = (_SINCE + number * _HALF_MONTH).astimezone(zone)
        offset = moment.utcoffset() or timedelta()
        if offset % timedelta(hours=1):
            raise ValueError(
                f"its offset from UTC is not whole hours ({moment:%z} on {moment:%Y-%m-%d}); days are sums of UTC "
                "hours, so expected a zone whose offset has been whole hours since 2000"
            )
    return name


Grain = Literal["hour", "day", "week", "month"]
TimeZone = Annotated[str, AfterValidator(_checked_time_zone)]


@dataclass(frozen=True, order=True)
class Day:
    """One calendar day of a time zone, such as ``Europe/Berlin``."""

    time_zone: str
    date: date

    @classmethod
    def containing(cls, time_zone: str, hour: Hour) -> Day:
        """The day in which an hour begins."""
        return cls(time_zone, hour.start.astimezone(ZoneInfo(time_zone)).date())

    @property
    def hours(self) -> HourRange:
        """Its hours, UTC."""
        zone = ZoneInfo(self.time_zone)
        # At midnight clocks may go forward; Python takes the offset before, which gives that very moment.
        start, end = (datetime.combine(self.date + timedelta(days=n), time(), zone) for n in (0, 1))
        return HourRange(Hour.containing(start), Hour.containing(end))

    def __str__(self) -> str:
        return f"{self.date} {self.time_zone}"


def days_of(time_zones: Iterable[str], hours: Iterable[Hour]) -> list[Day]:
    """The days, of each time zone, that have one of these hours; in order."""
    wanted = set(hours)
    return sorted({Day.containing(zone, hour) for zone in time_zones for hour in wanted})


def hours_of(days: Iterable[Day]) -> list[Hour]:
    """All hours of these days, in order and each once."""
    return sorted({hour for day in days for hour in day.hours})


def days_predicate(days: Iterable[Day]) -> str:
    """A constant SQL predicate, on partition columns only, that is true for exactly these days; false for none."""
    by_zone: dict[str, list[str]] = {}
    for day in sorted(set(days)):
        by_zone.setdefault(day.time_zone, []).append(f"DATE'{day.date.isoformat()}'")
    terms = [f"(time_zone = '{zone}' AND click_date IN ({', '.join(dates)}))" for zone, dates in by_zone.items()]
    return " OR ".join(terms) or "false"


def first_day(day: date, grain: Grain) -> date:
    """The first day of the week, from Monday on, or month that has this day; the day itself for a day."""
    if grain == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if grain == "month" else day


def name_of(first: date, grain: Grain) -> str:
    """Of the period that begins on this day: ``2026-03-01``, ``2026-W09``, ``2026-03``."""
    if grain == "week":
        year, week, _ = first.isocalendar()
        return f"{year}-W{week:02d}"
    return first.isoformat()[:7] if grain == "month" else first.isoformat()


def days_in(first: date, grain: Grain) -> int:
    """How many days the period has that begins on this day."""
    if grain == "month":
        return ((first + timedelta(days=31)).replace(day=1) - first).days
    return 7 if grain == "week" else 1

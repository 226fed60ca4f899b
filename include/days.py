"""Days of a time zone, and the hours, UTC, that they have in whole or, where they begin and end within one, in part.

Weeks are those of ISO 8601, from Monday on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator

from include.hours import ONE_HOUR, Hour, HourRange
from include.time_formats import require_zone

#: Since then the offset of a time zone must be quarters of an hour: no smaller part of an hour is counted by itself.
_SINCE, _UNTIL = datetime(2000, 1, 1, tzinfo=UTC), datetime(2040, 1, 1, tzinfo=UTC)
_WEEK = timedelta(days=7)
_QUARTER = timedelta(minutes=15)


def _checked_time_zone(name: str) -> str:
    """The name, if days of the zone are whole quarters of hours.

    Raises:
        ValueError: if there is no such zone, or its offset from UTC is not quarters of an hour.
    """
    require_zone(name)
    for moment in _moments(name):
        if _offset(moment) % _QUARTER:
            raise ValueError(
                f"its offset from UTC is not quarters of an hour ({moment:%z} on {moment:%Y-%m-%d}); hours are counted "
                f"by quarters at most, so expected a zone whose offset has been such since {_SINCE.year}"
            )
    return name


def _moments(time_zone: str) -> Iterator[datetime]:
    """So many that each offset of the zone is that of one."""
    zone = ZoneInfo(time_zone)
    return ((_SINCE + number * _WEEK).astimezone(zone) for number in range((_UNTIL - _SINCE) // _WEEK))


def _offset(moment: datetime) -> timedelta:
    return moment.utcoffset() or timedelta()


Grain = Literal["hour", "day", "week", "month"]
TimeZone = Annotated[str, AfterValidator(_checked_time_zone)]


@dataclass(frozen=True, order=True)
class Day:
    """One calendar day of a time zone, such as ``Europe/Berlin``."""

    time_zone: str
    date: date

    @classmethod
    def containing(cls, time_zone: str, moment: datetime) -> Day:
        """The day of a moment, which has an offset."""
        day = cls(time_zone, moment.astimezone(ZoneInfo(time_zone)).date())
        following = cls(time_zone, day.date + timedelta(days=1))
        # Just after midnight clocks may go back to before it, as in St John's until 2011.
        return following if following.start <= moment else day

    @property
    def start(self) -> datetime:
        """Its first moment, UTC."""
        # At midnight clocks may go forward; Python takes the offset before, which gives that very moment.
        return datetime.combine(self.date, time(), ZoneInfo(self.time_zone)).astimezone(UTC)

    @property
    def end(self) -> datetime:
        """The first moment after it, UTC."""
        return Day(self.time_zone, self.date + timedelta(days=1)).start

    @property
    def hours(self) -> HourRange:
        """The hours, UTC, that it has in whole or in part."""
        return HourRange(Hour.containing(self.start), Hour.containing(self.end - timedelta.resolution).plus(1))

    @property
    def quarters(self) -> dict[Hour, range]:
        """Of the hours that it has in part, the first or the last: which quarters, from 0 to 3, are its own."""
        begins, ends = (moment.minute * 60 // _QUARTER.seconds for moment in (self.start, self.end))
        first, last = Hour.containing(self.start), Hour.containing(self.end)
        return ({first: range(begins, 4)} if begins else {}) | ({last: range(ends)} if ends else {})

    def __str__(self) -> str:
        return f"{self.date} {self.time_zone}"


def days_of(time_zones: Iterable[str], hours: Iterable[Hour]) -> list[Day]:
    """The days, of each time zone, that have one of these hours in whole or in part; in order."""
    moments = {moment for hour in set(hours) for moment in (hour.start, hour.end - timedelta.resolution)}
    return sorted({Day.containing(zone, moment) for zone in time_zones for moment in moments})


def hours_of_two_days(time_zones: Iterable[str]) -> frozenset[int]:
    """The hours of the day, UTC, 0 to 23, within which days of one of these time zones have ended since 2000."""
    ends = {-_offset(moment) % timedelta(days=1) for zone in time_zones for moment in _moments(zone)}
    return frozenset(end // ONE_HOUR for end in ends if end % ONE_HOUR)


def hours_of(days: Iterable[Day]) -> list[Hour]:
    """All hours of these days, in order and each once."""
    return sorted({hour for day in days for hour in day.hours})


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

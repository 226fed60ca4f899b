"""Hours, UTC, and half-open ranges of them: the unit in which Clickmill is run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from typing import Any, Protocol

from include.errors import UsageError
from include.texts import as_literal

ONE_HOUR = timedelta(hours=1)
HOUR_FORMAT = "%Y-%m-%dT%H"
#: Hours before and after them can be reckoned with, and written with four digits for the year.
FIRST_YEAR, LAST_YEAR = 1970, 2999
#: The most hours that one run is given unless a person asks for more: it is repeated as a whole when it fails.
MOST_HOURS_A_RUN = 24 * 31
#: So many hours without logs, at most, are run along with those around them, as hours without lines.
MOST_HOURS_BETWEEN = 24
#: More ranges than these would be no text to read.
_MOST_RANGES = 4


@dataclass(frozen=True, order=True)
class Hour:
    """One hour, UTC. Whether it is a log hour or a click hour, the variable's name says."""

    start: datetime

    @classmethod
    def parse(cls, text: str) -> Hour:
        """``2026-03-01T05`` or a longer ISO time on the full hour; without an offset it is UTC.

        Raises:
            UsageError: if the text is not such an hour.
        """
        expected = f"not an hour: {text!r}; expected UTC such as 2026-03-01T05"
        try:
            moment = datetime.fromisoformat(text.strip())
            moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except (ValueError, OverflowError):
            raise UsageError(expected) from None
        if not FIRST_YEAR <= moment.year <= LAST_YEAR:
            raise UsageError(f"{expected}, within {FIRST_YEAR} to {LAST_YEAR}")
        if "T" not in text:
            raise UsageError(expected)
        hour = cls.containing(moment)
        if moment != hour.start:
            raise UsageError(f"not on the full hour: {text!r}; expected {hour} or {hour.plus(1)}")
        return hour

    @classmethod
    def containing(cls, moment: datetime) -> Hour:
        """The hour of a moment, which has an offset.

        Raises:
            OverflowError: if it is before the year 1 or after 9999, UTC.
        """
        return cls(moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0))

    @classmethod
    def of(cls, day: date, hour: int) -> Hour:
        """The hour ``hour`` (0 to 23) of ``day``."""
        return cls(datetime(day.year, day.month, day.day, hour, tzinfo=UTC))

    @property
    def day(self) -> date:
        """The UTC day."""
        return self.start.date()

    @property
    def hour(self) -> int:
        """0 to 23."""
        return self.start.hour

    @property
    def end(self) -> datetime:
        """The first moment after it."""
        return self.start + ONE_HOUR

    @property
    def number(self) -> int:
        """Hours since 1970-01-01T00."""
        return int(self.start.timestamp()) // 3600

    @classmethod
    def of_number(cls, number: int) -> Hour:
        """The hour that is so many hours after 1970-01-01T00."""
        return cls(datetime.fromtimestamp(number * 3600, tz=UTC))

    def plus(self, hours: int) -> Hour:
        """The hour that many hours later (earlier when negative)."""
        return Hour(self.start + hours * ONE_HOUR)

    def __str__(self) -> str:
        return self.start.strftime(HOUR_FORMAT)


@dataclass(frozen=True, order=True)
class LogHour:
    """One log hour of one source; as text, such as in ``quality_results``, it is ``web 2026-03-01T06``."""

    source: str
    hour: Hour

    @classmethod
    def parse(cls, text: str) -> LogHour:
        """From its text.

        Raises:
            ValueError: if the text is not a source's name and an hour.
        """
        source, hour = text.split()
        return cls(source, Hour.parse(hour))

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> LogHour:
        """That of a row with ``source``, ``log_date`` and ``log_hour``."""
        return cls(row["source"], log_hour_of(row))

    @property
    def row(self) -> dict[str, Any]:
        """``source``, ``log_date`` and ``log_hour``, as ``of`` takes them."""
        return {"source": self.source, "log_date": self.hour.day, "log_hour": self.hour.hour}

    def __str__(self) -> str:
        return f"{self.source} {self.hour}"


class Row(Protocol):
    """A row by the names of its columns, of Spark or as a dictionary."""

    def __getitem__(self, name: str, /) -> Any: ...


def log_hour_of(row: Row) -> Hour:
    """That of a row with ``log_date`` and ``log_hour``."""
    return Hour.of(row["log_date"], row["log_hour"])


def click_hour_of(row: Row) -> Hour:
    """That of a row with ``click_date`` and ``click_hour``."""
    return Hour.of(row["click_date"], row["click_hour"])


@dataclass(frozen=True)
class HourRange:
    """The hours from ``start`` up to, not including, ``end``; at least one."""

    start: Hour
    end: Hour

    def __post_init__(self) -> None:
        if not self.start < self.end:
            raise UsageError(
                f"empty range of hours: from {self.start} to {self.end}; "
                "expected 'to' after 'from' (the range is half-open: 'to' itself is not included)"
            )

    @classmethod
    def single(cls, hour: Hour) -> HourRange:
        """A range of one hour."""
        return cls(hour, hour.plus(1))

    def __iter__(self) -> Iterator[Hour]:
        hour = self.start
        while hour < self.end:
            yield hour
            hour = hour.plus(1)

    def __len__(self) -> int:
        return (self.end.start - self.start.start) // ONE_HOUR

    def chunks(self, most: int) -> list[HourRange]:
        """The range in pieces of so many hours, the last one perhaps shorter."""
        starts = (self.start.plus(shift) for shift in range(0, len(self), most))
        return [HourRange(start, min(start.plus(most), self.end)) for start in starts]

    def __contains__(self, hour: object) -> bool:
        return isinstance(hour, Hour) and self.start <= hour < self.end

    def __str__(self) -> str:
        return str(self.start) if len(self) == 1 else f"{self.start}..{self.end}"


@dataclass(frozen=True)
class SparseHours(HourRange):
    """Only these hours of a range, for one run over all of them; ``start`` and ``end`` bound them."""

    members: frozenset[Hour]

    def __iter__(self) -> Iterator[Hour]:
        return iter(sorted(self.members))

    def __len__(self) -> int:
        return len(self.members)

    def chunks(self, most: int) -> list[HourRange]:
        """So many of the hours each, the last one perhaps fewer."""
        hours = list(self)
        return [_bounding(hours[first : first + most]) for first in range(0, len(hours), most)]

    def __contains__(self, hour: object) -> bool:
        return hour in self.members

    def __str__(self) -> str:
        return f"{self.start}..{self.end} ({len(self)} of them)"


def near_each_other(hours: Iterable[Hour]) -> list[HourRange]:
    """The hours in as few ranges for one run each as there can be, without any that is not given.

    Between two of them a range leaves out ``MOST_HOURS_BETWEEN`` at most: a run may read what is between.
    """
    wanted = set(hours)
    spans = contiguous(wanted, MOST_HOURS_BETWEEN)
    within = [_bounding([hour for hour in span if hour in wanted]) for span in spans]
    return [part for span in within for part in span.chunks(MOST_HOURS_A_RUN)]


def _bounding(hours: Sequence[Hour]) -> HourRange:
    whole = HourRange(hours[0], hours[-1].plus(1))
    return whole if len(whole) == len(hours) else SparseHours(whole.start, whole.end, frozenset(hours))


def contiguous(hours: Iterable[Hour], most_between: int = 0) -> list[HourRange]:
    """The hours as ranges, in order; hours between them that are not given, so many at most, are taken along."""
    ranges: list[HourRange] = []
    for hour in sorted(set(hours)):
        if ranges and hour <= ranges[-1].end.plus(most_between):
            ranges[-1] = HourRange(ranges[-1].start, hour.plus(1))
        else:
            ranges.append(HourRange.single(hour))
    return ranges


def as_ranges(hours: Iterable[Hour]) -> str:
    """Hours as text, neighbours as one range."""
    return ", ".join(map(str, contiguous(hours)))


def hours_in_words(hours: Iterable[Hour]) -> str:
    """Hours as text: neighbours as one range, and of many ranges how many hours between which."""
    in_order = sorted(set(hours))
    if len(contiguous(in_order)) <= _MOST_RANGES:
        return as_ranges(in_order)
    return f"{len(in_order):,} log hours from {in_order[0]} to {in_order[-1]}"


def by_day(hours: Iterable[Hour]) -> dict[date, list[int]]:
    """The hours of each day, 0 to 23, both in order and without repetition."""
    days = groupby(sorted(set(hours)), key=lambda hour: hour.day)
    return {day: [hour.hour for hour in of_day] for day, of_day in days}


def hours_predicate(hours: Iterable[Hour], day_column: str, hour_column: str) -> str:
    """A constant SQL predicate that is true for exactly these hours; false for none of them.

    One term a day, so that it stays short for a month of hours, and on partition columns only,
    so that Delta replaces whole partitions by their metadata.
    """
    terms = []
    for day, numbers in by_day(hours).items():
        term = f"{day_column} = DATE'{day.isoformat()}'"
        if len(numbers) < 24:
            term += f" AND {hour_column} IN ({', '.join(map(str, numbers))})"
        terms.append(f"({term})")
    return " OR ".join(terms) if terms else "false"


def log_hours_predicate(source: str, hours: Iterable[Hour]) -> str:
    """``hours_predicate`` for a source's log hours."""
    return f"source = {as_literal(source)} AND ({hours_predicate(hours, 'log_date', 'log_hour')})"


def click_hours_predicate(hours: Iterable[Hour]) -> str:
    """``hours_predicate`` for click hours."""
    return hours_predicate(hours, "click_date", "click_hour")

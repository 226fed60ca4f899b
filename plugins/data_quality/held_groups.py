"""Held click hours by what holds them: those of one cause are one thing to a person, and decided on at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from include.errors import UsageError
from include.holds import INCIDENT_HOURS, Event, cause_of
from include.hours import HourRange, LogHour, contiguous


@dataclass(frozen=True)
class AskedHour:
    """A held click hour, and the run of held_hours that asks about it; None if its question is not open yet."""

    hour: str
    run_id: str | None


@dataclass(frozen=True)
class HeldGroup:
    """Click hours that are held for the same ``cause``, the newest first: checks and sources, without hours."""

    cause: str
    events: tuple[Event, ...]
    questions: Mapping[str, str]

    @property
    def hours(self) -> list[AskedHour]:
        """Each with its question."""
        return [AskedHour(hour, self.questions.get(hour)) for hour in (str(event.hour) for event in self.events)]

    @property
    def can_be_answered(self) -> bool:
        """Whether a question about one of the hours is open."""
        return any(hour.run_id for hour in self.hours)

    @property
    def span(self) -> str:
        """From the first hour to the last, for people."""
        newest, oldest = self.events[0].hour, self.events[-1].hour
        return str(newest) if newest == oldest else f"{oldest} to {newest}"

    @property
    def to_run_again(self) -> tuple[str, list[HourRange]]:
        """The source whose log hours failed, ``all`` if there are several, and those log hours, neighbours together."""
        partitions = {failure.partition for event in self.events for failure in event.findings}
        log_hours = [log_hour for partition in partitions if (log_hour := _log_hour(partition))]
        sources = {log_hour.source for log_hour in log_hours}
        hours = [log_hour.hour for log_hour in log_hours] or [event.hour for event in self.events]
        return sources.pop() if len(sources) == 1 else "all", contiguous(hours, INCIDENT_HOURS)


def grouped(held: Iterable[Event], questions: Mapping[str, str]) -> list[HeldGroup]:
    """The held hours by cause, in the order in which they come; ``questions`` are runs of held_hours by click hour."""
    groups: dict[str, list[Event]] = {}
    for event in held:
        groups.setdefault(cause_of(event.because), []).append(event)
    return [HeldGroup(cause, tuple(events), questions) for cause, events in groups.items()]


def _log_hour(partition: str) -> LogHour | None:
    """The log hour that a partition is; None of a click hour."""
    try:
        return LogHour.parse(partition)
    except (ValueError, UsageError):
        return None

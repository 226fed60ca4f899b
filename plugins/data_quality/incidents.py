"""The page of incidents: click hours that were held for one cause, from the first to the last, as one thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from include.holds import DECISIONS, HELD, INCIDENT_HOURS, Event, cause_of
from include.hours import Hour, contiguous
from include.quality_index import QualityIndex
from plugins.data_quality.held_groups import HeldGroup
from plugins.data_quality.links import Links
from plugins.data_quality.questions import Questions
from plugins.data_quality.rendering import render_page
from plugins.data_quality.rights import Rights

MOST_INCIDENTS = 50


@dataclass(frozen=True)
class Incident:
    """Click hours that were held for one ``cause``; ``newest`` is the newest event of each, by hour, oldest first."""

    cause: str
    began_at: datetime
    newest: Mapping[str, Event]
    decisions: tuple[Event, ...]

    @property
    def id(self) -> str:
        """What stays while hours are added."""
        return f"{next(iter(self.newest))}-{sha256(self.cause.encode()).hexdigest()[:8]}"

    @property
    def held(self) -> tuple[Event, ...]:
        """The events of the hours that are held still, for this cause, the newest first."""
        events = reversed(list(self.newest.values()))
        return tuple(event for event in events if event.outcome == HELD and cause_of(event.because) == self.cause)

    @property
    def is_over(self) -> bool:
        """Whether none of its hours is held for this any more."""
        return not self.held

    @property
    def ended_at(self) -> datetime | None:
        """When the last of its hours was published, decided on, or held for something else; None before that."""
        return max(event.at for event in self.newest.values()) if self.is_over else None

    def group(self, questions: Questions) -> HeldGroup | None:
        """What there is to decide on; None if it is over."""
        return HeldGroup(self.cause, self.held, questions.by_hour) if self.held else None


def incidents(index: QualityIndex) -> list[Incident]:
    """Those of all causes, the newest first, of which there are so many as a page has."""
    histories = index.held_histories()
    by_cause: dict[str, list[str]] = {}
    for hour, events in histories.items():
        for cause in dict.fromkeys(cause_of(event.because) for event in events if event.outcome == HELD):
            by_cause.setdefault(cause, []).append(hour)
    found = [
        _incident(cause, {hour: histories[hour] for hour in near})
        for cause, hours in by_cause.items()
        for near in _near_each_other(hours)
    ]
    return sorted(found, key=lambda incident: incident.began_at, reverse=True)[:MOST_INCIDENTS]


def _near_each_other(hours: Sequence[str]) -> list[list[str]]:
    ranges = contiguous(map(Hour.parse, hours), INCIDENT_HOURS)
    return [[hour for hour in hours if Hour.parse(hour) in near] for near in ranges]


def _incident(cause: str, histories: Mapping[str, Sequence[Event]]) -> Incident:
    held = [
        event
        for events in histories.values()
        for event in events
        if event.outcome == HELD and cause_of(event.because) == cause
    ]
    began_at = min(event.at for event in held)
    decisions = [
        event
        for events in histories.values()
        for event in events
        if event.outcome in DECISIONS.values() and not event.is_carried_out_again and event.at >= began_at
    ]
    newest = {hour: events[-1] for hour, events in histories.items()}
    return Incident(cause, began_at, newest, tuple(sorted(decisions, key=lambda event: event.at, reverse=True)))


def render_incidents(
    index: QualityIndex, links: Links, cause: str | None, questions: Questions, rights: Rights
) -> tuple[str, str]:
    """The incidents of a cause, or of all, and the page's policy."""
    shown = [incident for incident in incidents(index) if cause in (None, incident.cause)]
    groups = {incident.id: incident.group(questions) for incident in shown}
    return render_page(
        "quality_incidents.html",
        links,
        title="Incidents",
        cause=cause,
        incidents=shown,
        groups=groups,
        rights=rights,
        may_act=rights.decide_hours and any(group and group.can_be_answered for group in groups.values()),
    )

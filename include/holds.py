"""What becomes of a click hour: held and why, published, or decided by a person. Rules over ``quality_results``' rows.

A click hour is held while the newest validation of it, or of a log hour with clicks for it, has a critical failure,
and no person has decided on these very counts. Everything here is a function of the rows and of two kinds of moments:
when its log hours were ingested, and when it was counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from include.errors import ClickmillError
from include.log_hours import Hour
from include.tables import PUBLISHED_CLICKS_BY_URL_HOURLY

SUITE = "publication"
HELD, PUBLISHED, PUBLISHED_ANYWAY, DROPPED = "held", "published", "published_anyway", "dropped"
#: What a person can decide on a held click hour, and the event that it makes.
DECISIONS = {"publish": PUBLISHED_ANYWAY, "drop": DROPPED}

#: What each event says is true from then on.
MEANING = {
    HELD: "published as it was before, until the checks pass or a person decides",
    PUBLISHED: "published as it was counted; no critical check failed",
    PUBLISHED_ANYWAY: "published as it was counted though critical checks failed, because a person said so",
    DROPPED: "published as it was before, because a person dropped the new counts",
}

#: The columns of ``quality_results`` that the rules read.
COLUMNS = (
    "run_id", "validated_at", "suite", "partition", "check_id", "expectation", "severity", "outcome", "observed",
    "examples", "actor",
)  # fmt: skip
MAX_EXAMPLES = 20


@dataclass(frozen=True)
class Event:
    """What became of a click hour; ``because`` are the reasons of a hold, or the person's words.

    ``examples`` are the failed checks in full, with what was found, at most 20.
    """

    run_id: str
    at: datetime
    outcome: str
    because: str
    actor: str | None = None
    examples: tuple[str, ...] = ()


def _event(row: Mapping[str, Any]) -> Event:
    return Event(
        row["run_id"],
        row["validated_at"],
        row["outcome"],
        row["observed"] or "",
        row["actor"],
        tuple(row["examples"] or ()),
    )


@dataclass(frozen=True)
class Failure:
    """A critical check that failed for a log hour or click hour; ``said`` is for people."""

    partition: str
    check_id: str
    said: str

    @property
    def reason(self) -> str:
        """What stays the same when the check fails again with other numbers."""
        return f"{self.partition}: {self.check_id}"


def described_failure(row: Mapping[str, Any]) -> str:
    """What a row of ``quality_results`` says of a check that failed, for people."""
    return f"{row['partition']}: expected {row['expectation']}; found {row['observed']}"


def of_newest_runs(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Of rows of ``quality_results``, those of the run that validated each suite's partition last; without events.

    Whole runs, not single checks: a check that is gone, or worded again, leaves no outcome behind. Rows of an earlier
    version have no outcome, and are left out.
    """
    judged = [row for row in rows if row["suite"] != SUITE and row["outcome"] is not None]
    newest: dict[tuple[str, str], tuple[datetime, str]] = {}
    for row in judged:
        partition, run = (row["suite"], row["partition"]), (row["validated_at"], row["run_id"])
        newest[partition] = max(run, newest.get(partition, run))
    return [row for row in judged if newest[row["suite"], row["partition"]] == (row["validated_at"], row["run_id"])]


@dataclass(frozen=True)
class Findings:
    """What ``quality_results`` says.

    By partition, when it was last validated and what failed critically then; by click hour, its newest event.
    """

    validated_at: Mapping[str, datetime]
    failures: Mapping[str, tuple[Failure, ...]]
    events: Mapping[str, Event]

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> Findings:
        """From rows of ``quality_results``, whole runs of them, in any order."""
        validated_at: dict[str, datetime] = {}
        events: dict[str, Event] = {}
        rows = list(rows)
        for row in rows:
            partition, at = row["partition"], row["validated_at"]
            if row["suite"] == SUITE:
                if partition not in events or at >= events[partition].at:
                    events[partition] = _event(row)
                continue
            validated_at[partition] = max(at, validated_at.get(partition, at))
        failures: dict[str, list[Failure]] = {}
        for row in of_newest_runs(rows):
            if row["severity"] == "critical" and row["outcome"] == "fail":
                failure = Failure(row["partition"], row["check_id"], described_failure(row))
                failures.setdefault(row["partition"], []).append(failure)
        by_reason = {
            partition: tuple(sorted(failed, key=lambda failure: failure.reason))
            for partition, failed in failures.items()
        }
        return cls(validated_at, by_reason, events)


@dataclass(frozen=True)
class ClickHourState:
    """Whether a click hour may be published as it is counted now.

    ``failures`` are the critical ones of the click hour and of the log hours that touch it. ``waits_for`` says what
    is yet to be done before anything can be said of these counts; None if nothing. ``ingested_again`` are the log hours
    that touch it and were ingested since they were validated, such as ``web 2026-03-01T06``. ``changed_at`` is when it
    was counted, or one of its log hours ingested, last: until that changes, these are the same counts. ``event`` is the
    newest one, None if there is none; ``is_decided``: it is a person's decision on these very counts. ``staged_by`` is
    the backfill that waits for a person before these counts are published, None if there is none.
    """

    hour: Hour
    was_validated: bool
    waits_for: str | None
    ingested_again: frozenset[str]
    failures: tuple[Failure, ...]
    changed_at: datetime
    event: Event | None
    is_decided: bool
    staged_by: str | None = None

    @property
    def is_held(self) -> bool:
        """Whether a critical check failed and no person has decided."""
        return bool(self.failures) and not self.is_decided

    @property
    def is_dropped(self) -> bool:
        """Whether a person said that these counts are not to be published."""
        return self.is_decided and self.event is not None and self.event.outcome == DROPPED

    @property
    def can_be_published(self) -> bool:
        """Whether nothing speaks against publishing these counts."""
        return self.is_good and self.staged_by is None

    @property
    def is_good(self) -> bool:
        """Whether nothing but a staged backfill speaks against publishing these counts."""
        return self.waits_for is None and not self.is_held and not self.is_dropped

    @property
    def reasons(self) -> str:
        """Why it is held, the same text for the same failures; empty for none."""
        return "; ".join(failure.reason for failure in self.failures)

    @property
    def said(self) -> tuple[str, ...]:
        """The failed checks with what was found, as events have them: at most 20."""
        return tuple(failure.said for failure in self.failures[:MAX_EXAMPLES])

    @property
    def is_newly_held(self) -> bool:
        """Whether it is held, and its newest event does not say so, or says other reasons or numbers."""
        said_then = (self.event.because, self.event.examples) if self.event and self.event.outcome == HELD else None
        return self.is_held and said_then != (self.reasons, self.said)

    @property
    def counts(self) -> str:
        """A name of these very counts: it changes when they are counted again, or one of their log hours ingested."""
        return self.changed_at.isoformat()

    @property
    def is_recorded(self) -> bool:
        """Whether its newest event is a hold, of these very counts."""
        return self.event is not None and self.event.outcome == HELD and self.event.at > self.changed_at


class OtherCountsError(ClickmillError):
    """A person decided on counts that are others by now; ``state`` says what there is to decide on."""

    def __init__(self, state: ClickHourState) -> None:
        super().__init__(
            f"the decision on {state.hour} is not for the counts that there are, of "
            f"{state.changed_at:%Y-%m-%d %H:%M:%S} UTC: they were made since it was asked for, or were not shown; see "
            "what was found in them, and decide again"
        )
        self.state = state


def click_hour_state(
    hour: Hour,
    log_hours: Mapping[str, datetime],
    counted_at: datetime | None,
    findings: Findings,
    staged_by: str | None = None,
) -> ClickHourState:
    """The state of a click hour.

    ``log_hours`` are those that touch it, such as ``web 2026-03-01T05``, with the moment each was ingested;
    ``counted_at`` is None when it has no clicks. ``staged_by`` is as in ``ClickHourState``.
    """
    partitions = (str(hour), *sorted(log_hours))
    event = findings.events.get(str(hour))
    changed_at = max([*log_hours.values(), *([counted_at] if counted_at else [])])
    return ClickHourState(
        hour=hour,
        was_validated=str(hour) in findings.validated_at,
        waits_for=_waits_for(hour, log_hours, counted_at, findings.validated_at),
        ingested_again=frozenset(
            log_hour
            for log_hour, ingested_at in log_hours.items()
            if log_hour in findings.validated_at and findings.validated_at[log_hour] <= ingested_at
        ),
        failures=tuple(failure for partition in partitions for failure in findings.failures.get(partition, ())),
        changed_at=changed_at,
        event=event,
        is_decided=event is not None and event.outcome in DECISIONS.values() and event.at > changed_at,
        staged_by=staged_by,
    )


def _waits_for(
    hour: Hour, log_hours: Mapping[str, datetime], counted_at: datetime | None, validated_at: Mapping[str, datetime]
) -> str | None:
    for log_hour, ingested_at in sorted(log_hours.items()):
        if counted_at and ingested_at > counted_at:
            return f"{hour} is left to the run of {log_hour}, which was ingested later"
    if str(hour) not in validated_at:
        return f"{hour} has not been validated"
    if counted_at and counted_at >= validated_at[str(hour)]:
        return f"{hour} was counted again since it was validated: the run that did so publishes it"
    for log_hour, ingested_at in sorted(log_hours.items()):
        if log_hour not in validated_at or validated_at[log_hour] <= ingested_at:
            return f"{hour} is left to the run of {log_hour}, which has yet to validate it"
    return None


def event_row(
    run_id: str,
    at: datetime,
    hour: Hour,
    outcome: str,
    because: str,
    *,
    examples: Iterable[str] = (),
    actor: str | None = None,
) -> dict[str, Any]:
    """A row of ``quality_results`` that says what became of a click hour."""
    return {
        "run_id": run_id,
        "validated_at": at,
        "suite": SUITE,
        "partition": str(hour),
        "hour": str(hour),
        "checked_table": PUBLISHED_CLICKS_BY_URL_HOURLY.name,
        "check_id": outcome,
        "expectation": MEANING[outcome],
        "severity": "info",
        "outcome": outcome,
        "observed": because,
        "examples": list(examples)[:MAX_EXAMPLES],
        "actor": actor,
    }


def approval_run_id(hour: Hour, event: Event) -> str:
    """The DAG run of ``held_hours`` that asks about this hold: one for each, however often it is asked for."""
    return f"{hour}_{event.run_id}"

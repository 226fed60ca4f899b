"""What becomes of a click hour: held and why, published, or decided by a person.

Rules over results of checks, the rows of ``quality_results``, and over events, those of ``journal``.

A click hour is held while the newest validation of it, or of a log hour with clicks for it, has a critical failure
that no person has answered for. An answer is for what was found, not for the moment of counting: it stands while
nothing else fails critically, and nothing worse than was shown. What a person has dropped stays as it was published
until a person releases it, or a backfill of it. Everything here is a function of the rows and of two kinds of moments:
when its log hours were ingested, and when it was counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from include.errors import ClickmillError
from include.hours import Hour, HourRange, LogHour
from include.journal import CLICK_HOUR, Act, in_order, journal_row

HELD, PUBLISHED, PUBLISHED_ANYWAY, DROPPED = "held", "published", "published_anyway", "dropped"
RELEASED = "released"
#: What a person can decide on a held click hour, and the event that it makes.
DECISIONS = {"publish": PUBLISHED_ANYWAY, "drop": DROPPED}
#: What takes such a decision back.
RELEASE = "release"
#: A number that is further from what was expected by so much of that distance, at most, counts as the same.
SAME_WITHIN = 0.01

#: Hours that are held for the same cause are one incident, with so many others between them at most.
INCIDENT_HOURS = 24
_HOUR = re.compile(r"\s*\b\d{4}-\d\d-\d\dT\d\d\b")

#: The columns of ``quality_results`` that the rules read.
COLUMNS = (
    "run_id", "validated_at", "suite", "partition", "check_id", "expectation", "severity", "outcome", "observed",
    "observed_value", "lowest", "highest",
)  # fmt: skip
MAX_EXAMPLES = 20


@dataclass(frozen=True)
class Failure:
    """A critical check that failed for a log hour or click hour; ``described`` is for people.

    ``observed`` is what was found, as text, and ``value`` the same as a number; ``lowest`` and ``highest`` are what was
    expected. None where there is none.
    """

    partition: str
    check_id: str
    described: str
    suite: str = ""
    observed: str = ""
    value: float | None = None
    lowest: float | None = None
    highest: float | None = None

    @property
    def reason(self) -> str:
        """What stays the same when the check fails again with other numbers."""
        return f"{self.partition}: {self.check_id}"

    @property
    def subject(self) -> tuple[str, str, str]:
        """What was checked."""
        return self.suite, self.check_id, self.partition

    @property
    def _excess(self) -> float | None:
        """By how much it is above the highest value expected, or, negative, below the lowest."""
        if self.value is None:
            return None
        if self.highest is not None and self.value >= self.highest:
            return self.value - self.highest
        if self.lowest is not None and self.value <= self.lowest:
            return self.value - self.lowest
        return None

    def is_no_worse_than(self, shown: Failure) -> bool:
        """Whether who has seen the other one of the same check has seen this one: the same or better, but for 1 %.

        Without numbers, only the same.
        """
        if (self.observed, self.value) == (shown.observed, shown.value):
            return True
        now, then = self._excess, shown._excess
        if now is None or then is None or self.value is None or shown.value is None:
            return False
        direction = 1 if (now or then) >= 0 else -1
        more = [(now - then) * direction]
        if self.lowest != self.highest:
            # A bound that was changed makes nothing better. What is to equal another number is as far from it.
            more.append((self.value - shown.value) * direction)
        return now * then >= 0 and max(more) <= SAME_WITHIN * abs(then)


def not_shown(failures: Iterable[Failure], shown: Iterable[Failure]) -> tuple[Failure, ...]:
    """Those that are worse than the shown one of the same check, or have none."""
    known = {failure.subject: failure for failure in shown}
    return tuple(
        failure
        for failure in failures
        if failure.subject not in known or not failure.is_no_worse_than(known[failure.subject])
    )


def compared(failures: Iterable[Failure], shown: Iterable[Failure]) -> list[str]:
    """What is new of each, in words without a text of a log: ``web 2026-03-01T08: share: 0.99, was 0.7``."""
    known = {failure.subject: failure for failure in shown}

    def change(failure: Failure) -> str:
        was = known.get(failure.subject)
        if was is None:
            return f"{failure.reason}: failed only since"
        if failure.value is None or was.value is None or failure.value == was.value:
            return f"{failure.reason}: finds something else"
        return f"{failure.reason}: {failure.value:.6g}, was {was.value:.6g}"

    return [change(failure) for failure in failures]


#: Fields that the journal has by another name.
_NAMES_IN_JOURNAL = {"described": "said", "observed": "found"}
_FIELDS = {name: field for field, name in _NAMES_IN_JOURNAL.items()}


def findings_text(failures: Iterable[Failure]) -> str:
    """Failures as JSON, as events keep them."""
    rows = (asdict(failure) for failure in failures)
    return json.dumps([{_NAMES_IN_JOURNAL.get(name, name): value for name, value in row.items()} for row in rows])


def findings_of(text: str | None) -> tuple[Failure, ...]:
    """The failures of such a text; none of none, or of one that an erasure has taken away."""
    try:
        rows = json.loads(text or "[]")
        return tuple(Failure(**{_FIELDS.get(name, name): value for name, value in row.items()}) for row in rows)
    except json.JSONDecodeError:
        return ()


@dataclass(frozen=True)
class Event:
    """What became of a click hour; ``because`` are the reasons of a hold, or the person's words.

    ``outcome`` is held, published, published_anyway, dropped or released. ``findings`` are the failed checks with what
    was found: of a decision what was shown. ``answered_at`` is when ``actor`` decided so: earlier than ``at`` if a run
    carried it out again. ``note`` says which answer was not carried out, or of an answer, that it is not carried out
    yet; None for neither. ``backfill_id`` is the backfill that was dropped or undone by it, None for others.
    """

    hour: Hour
    act_id: str
    at: datetime
    outcome: str
    because: str
    actor: str | None = None
    answered_at: datetime | None = None
    findings: tuple[Failure, ...] = ()
    note: str | None = None
    backfill_id: str | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Event:
        """That of a row of ``journal``, as ``include.journal.read_events`` has it."""
        details = row["details"]
        answered_at = details.get("answered_at")
        return cls(
            Hour.parse(row["subject"]),
            row["act_id"],
            row["at"],
            row["event"],
            row["because"] or "",
            row["actor"],
            datetime.fromisoformat(answered_at) if answered_at else row["at"] if row["actor"] else None,
            findings_of(details.get("findings")),
            details.get("note"),
            details.get("backfill"),
        )

    @property
    def is_carried_out_again(self) -> bool:
        """Whether a run carried out what a person had decided on earlier counts."""
        return self.answered_at is not None and self.answered_at < self.at

    @property
    def examples(self) -> tuple[str, ...]:
        """The failed checks with what was found, as text: at most 20."""
        return tuple(failure.described for failure in self.findings[:MAX_EXAMPLES])

    @property
    def described(self) -> str:
        """For people: what, when, by whom and why."""
        moment = self.answered_at or self.at
        by = f" by {self.actor}: {self.because}" if self.actor else ""
        return f"{self.outcome.replace('_', ' ')} at {moment:%Y-%m-%d %H:%M} UTC{by}"


def failure_text(partition: str, expectation: str, observed: str) -> str:
    """A check that failed, for people."""
    return f"{partition}: expected {expectation}; found {observed}"


def described_failure(row: Mapping[str, Any]) -> str:
    """What a row of ``quality_results`` says of a check that failed, for people."""
    return failure_text(row["partition"], row["expectation"], row["observed"])


def of_newest_runs(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Of rows of ``quality_results``, those of the run that validated each suite's partition last.

    Whole runs, not single checks: a check that is gone, or worded again, leaves no outcome behind.
    """
    judged = list(rows)
    newest: dict[tuple[str, str], tuple[datetime, str]] = {}
    for row in judged:
        partition, run = (row["suite"], row["partition"]), (row["validated_at"], row["run_id"])
        newest[partition] = max(run, newest.get(partition, run))
    return [row for row in judged if newest[row["suite"], row["partition"]] == (row["validated_at"], row["run_id"])]


@dataclass(frozen=True)
class Findings:
    """What ``quality_results`` and ``journal`` say.

    By partition, when it was last validated and what failed critically then; by click hour, its events, oldest first.
    """

    validated_at: Mapping[str, datetime]
    failures: Mapping[str, tuple[Failure, ...]]
    histories: Mapping[Hour, tuple[Event, ...]]

    @classmethod
    def of(cls, results: Iterable[Mapping[str, Any]], events: Iterable[Mapping[str, Any]]) -> Findings:
        """From rows of ``quality_results``, whole runs of them, and rows of ``journal``, in any order."""
        results = list(results)
        validated_at: dict[str, datetime] = {}
        for row in results:
            partition, at = row["partition"], row["validated_at"]
            validated_at[partition] = max(at, validated_at.get(partition, at))
        failures: dict[str, list[Failure]] = {}
        for row in of_newest_runs(results):
            if row["severity"] == "critical" and row["outcome"] == "fail":
                failures.setdefault(row["partition"], []).append(failure_of(row))
        by_reason = {
            partition: tuple(sorted(failed, key=lambda failure: failure.reason))
            for partition, failed in failures.items()
        }
        return cls(validated_at, by_reason, histories_of(events))


def histories_of(rows: Iterable[Mapping[str, Any]]) -> dict[Hour, tuple[Event, ...]]:
    """By click hour, in order, its events, oldest first; from rows of ``journal`` on click hours, in any order."""
    events: dict[Hour, list[Event]] = {}
    for event in map(Event.of, in_order(rows)):
        events.setdefault(event.hour, []).append(event)
    return {hour: tuple(events[hour]) for hour in sorted(events)}


def failure_of(row: Mapping[str, Any]) -> Failure:
    """What a row of ``quality_results`` says of a check that failed."""
    return Failure(
        row["partition"],
        row["check_id"],
        described_failure(row),
        row["suite"],
        row["observed"] or "",
        row.get("observed_value"),
        row.get("lowest"),
        row.get("highest"),
    )


def holding_of(history: Sequence[Event]) -> tuple[Event, ...]:
    """The events since nothing else became of an hour than that it is held; ``history`` has its oldest first."""
    end = next((n for n in range(len(history), 0, -1) if history[n - 1].outcome != HELD), 0)
    return tuple(history[end:])


def cause_of(because: str) -> str:
    """Of the reasons of a hold, what stays the same from hour to hour: sources and checks."""
    return "; ".join(sorted({_HOUR.sub("", reason).strip(" :") for reason in because.split("; ")}))


def is_of_known_incident(hour: Hour, histories: Mapping[Hour, Sequence[Event]]) -> bool:
    """Whether another of these click hours is held for the same cause, and was before this one, which is held."""
    holding = holding_of(histories[hour])
    cause, began = cause_of(holding[-1].because), (holding[0].at, hour)
    others = ((other, holding_of(events)) for other, events in histories.items() if other != hour)
    return any(of and cause_of(of[-1].because) == cause and (of[0].at, other) < began for other, of in others)


def answer_of(history: Sequence[Event]) -> Event | None:
    """The decision that a person has made, unless it was published since by passing the checks, or released."""
    last = next((event for event in reversed(history) if event.outcome != HELD), None)
    return last if last and last.outcome in DECISIONS.values() else None


@dataclass(frozen=True)
class ClickHourState:
    """Whether a click hour may be published as it is counted now.

    ``failures`` are the critical ones of the click hour and of the log hours that touch it. ``waits_for`` says what
    is yet to be done before anything can be said of these counts; None if nothing. ``ingested_again`` are the log hours
    that touch it and were ingested since they were validated; ``never_validated`` those that were not validated at all.
    ``changed_at`` is when it was counted, or one of its log hours ingested, last. ``history`` are its events, oldest
    first. ``staged_by`` is the backfill that waits for a person before these counts are published, None if there is
    none. ``lifted_by`` is the backfill by which what was dropped is judged again.
    """

    hour: Hour
    was_validated: bool
    waits_for: str | None
    ingested_again: frozenset[LogHour]
    never_validated: frozenset[LogHour]
    failures: tuple[Failure, ...]
    changed_at: datetime
    history: tuple[Event, ...]
    staged_by: str | None = None
    lifted_by: str | None = None

    @property
    def event(self) -> Event | None:
        """The newest event; None if there is none."""
        return self.history[-1] if self.history else None

    @property
    def holding(self) -> tuple[Event, ...]:
        """The events since nothing else became of it than that it is held."""
        return holding_of(self.history)

    @property
    def answer(self) -> Event | None:
        """The decision that a person has made, unless it was published since by passing the checks, or released."""
        return None if self.lifted_by else answer_of(self.history)

    @property
    def first_answer(self) -> Event | None:
        """The same, as the person made it: ``answer`` may be for counts that came later."""
        answer = self.answer
        return next((event for event in self.history if answer and event.at == answer.answered_at), answer)

    @property
    def former_answer(self) -> Event | None:
        """The newest decision of a person, whether it stands or not."""
        return next((event for event in reversed(self.history) if event.outcome in DECISIONS.values()), None)

    @property
    def not_answered(self) -> tuple[Failure, ...]:
        """What no person has answered for: other failures than were shown, and worse ones."""
        return not_shown(self.failures, self.answer.findings if self.answer else ())

    @property
    def is_held(self) -> bool:
        """Whether a critical check failed for which no person has answered."""
        return bool(self.not_answered)

    @property
    def is_decided(self) -> bool:
        """Whether a person's decision stands for what is found; not if all passes by now, unless it was dropped."""
        return self.answer is not None and not self.is_held and (bool(self.failures) or self.is_dropped)

    @property
    def is_dropped(self) -> bool:
        """Whether it stays as it was published because a person said so, whatever is found in the counts."""
        return self.answer is not None and self.answer.outcome == DROPPED

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
    def described_failures(self) -> tuple[str, ...]:
        """The failed checks with what was found, as events have them: at most 20."""
        return tuple(failure.described for failure in self.failures[:MAX_EXAMPLES])

    @property
    def is_newly_held(self) -> bool:
        """Whether it is held, and its newest event does not say so, or says other reasons or numbers."""
        event = self.event
        held_for = (event.because, event.examples) if event and event.outcome == HELD else None
        return self.is_held and held_for != (self.reasons, self.described_failures)

    @property
    def asked(self) -> Event:
        """The event of the question about a held hour: of the beginning, or of the last time it was asked again.

        That is so after an answer that was not carried out, and when something worse is found than was shown.
        """
        asked, *later = self.holding
        for event in later:
            if event.note or not_shown(event.findings, asked.findings):
                asked = event
        return asked

    @property
    def counts(self) -> str:
        """A name of these very counts: it changes when they are counted again, or one of their log hours ingested."""
        return self.changed_at.isoformat()

    @property
    def is_on_record(self) -> bool:
        """Whether its newest event says what became of these counts."""
        event = self.event
        return event is not None and event.outcome != HELD and not event.note and event.at > self.changed_at


class OtherFindingsError(ClickmillError):
    """A person decided on what was found before; ``state`` says what there is to decide on."""

    def __init__(self, state: ClickHourState, others: Sequence[Failure], shown: Sequence[Failure]) -> None:
        new = compared(others, shown)
        super().__init__(
            f"the decision on {state.hour} is not carried out, because what is found now was not shown: "
            f"{'; '.join(new[:3])}{'; …' if len(new) > 3 else ''}; look at it, and decide again"
        )
        self.state = state


def click_hour_state(
    hour: Hour,
    log_hours: Mapping[LogHour, datetime],
    counted_at: datetime | None,
    findings: Findings,
    staged_by: str | None = None,
) -> ClickHourState:
    """The state of a click hour.

    ``log_hours`` are those that touch it, with the moment each was ingested; ``counted_at`` is None when it has no
    clicks. ``staged_by`` is as in ``ClickHourState``.
    """
    partitions = (str(hour), *map(str, sorted(log_hours)))
    validated_at = {log_hour: findings.validated_at.get(str(log_hour)) for log_hour in log_hours}
    never_validated = frozenset(log_hour for log_hour, validated in validated_at.items() if validated is None)
    ingested_again = frozenset(
        log_hour
        for log_hour, validated in validated_at.items()
        if validated is not None and validated <= log_hours[log_hour]
    )
    own_validated_at = findings.validated_at.get(str(hour))
    changed_at = max([*log_hours.values(), *([counted_at] if counted_at else [])])
    return ClickHourState(
        hour=hour,
        was_validated=own_validated_at is not None,
        waits_for=_waits_for(hour, log_hours, counted_at, own_validated_at, never_validated | ingested_again),
        ingested_again=ingested_again,
        never_validated=never_validated,
        failures=tuple(failure for partition in partitions for failure in findings.failures.get(partition, ())),
        changed_at=changed_at,
        history=findings.histories.get(hour, ()),
        staged_by=staged_by,
    )


def _waits_for(
    hour: Hour,
    log_hours: Mapping[LogHour, datetime],
    counted_at: datetime | None,
    validated_at: datetime | None,
    to_validate: Set[LogHour],
) -> str | None:
    for log_hour, ingested_at in sorted(log_hours.items()):
        if counted_at and ingested_at > counted_at:
            return f"{hour} is left to the run of {log_hour}, which was ingested later"
    if validated_at is None:
        return f"{hour} has not been validated"
    if counted_at and counted_at >= validated_at:
        return f"{hour} was counted again since it was validated: the run that did so publishes it"
    if to_validate:
        return f"{hour} is left to the run of {min(to_validate)}, which has yet to validate it"
    return None


def event_row(
    act: Act,
    at: datetime,
    hour: Hour,
    outcome: str,
    because: str,
    *,
    findings: Sequence[Failure] = (),
    actor: str | None = None,
    answered_at: datetime | None = None,
    note: str | None = None,
    backfill_id: str | None = None,
) -> dict[str, Any]:
    """A row of ``journal`` that says what became of a click hour, as ``Event``."""
    details = {
        "findings": findings_text(findings) if findings or actor else None,
        "answered_at": answered_at.isoformat() if answered_at else None,
        "note": note,
        "backfill": backfill_id,
    }
    return journal_row(
        act, CLICK_HOUR, str(hour), outcome, at,
        hours=HourRange.single(hour), actor=actor, because=because, details=details,
    )  # fmt: skip


def carried_out(act: Act, at: datetime, state: ClickHourState) -> dict[str, Any]:
    """A row of ``journal``: a person's decision, carried out for counts that were made since."""
    answer = state.answer
    assert answer is not None
    return event_row(
        act, at, state.hour, answer.outcome, answer.because,
        findings=answer.findings, actor=answer.actor, answered_at=answer.answered_at,
    )  # fmt: skip


def approval_run_id(hour: Hour, event: Event) -> str:
    """The DAG run of ``held_hours`` that asks about a hold, ``asked`` being its event; however often it is counted."""
    return f"{hour}_{event.act_id}"

"""A person's decision on a backfill: a staged one is published as a whole, or dropped; another one is given up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from include.backfills import APPROVED, DROPPED, SWAPPED, SWAPPING, Backfill
from include.errors import ClickmillError, DecidedAlreadyError, FinalError, UsageError
from include.holds import DROPPED as DROPPED_HOUR
from include.holds import ClickHourState, event_row
from include.hours import Hour
from include.job_arguments import require_signed
from include.journal import Act
from include.settings import Settings
from include.tables import Table
from spark_jobs.backfill.compare import name_of_counts, staged_states
from spark_jobs.backfill.comparison_page import write_comparison
from spark_jobs.backfill.record import find_backfill, say, say_publishing
from spark_jobs.hours.held_hours import judged_rows, lift
from spark_jobs.lake.journal import SignedAct, append_events, signed_act
from spark_jobs.lake.lake import Lake
from spark_jobs.publish.follow_hours import follow_hours
from spark_jobs.publish.publish_hours import publish_hours
from spark_jobs.publish.report_data import renew_report

APPROVE, DROP = "approve", "drop"
_MADE = {APPROVE: APPROVED, DROP: DROPPED}


@dataclass(frozen=True)
class BackfillDecision:
    """What a person decided on a backfill, and why.

    ``counts`` are those that the person was shown, as ``Backfill.counts`` names them; None for those of the newest
    comparison.

    Raises:
        UsageError: if it is no decision, or nobody or no reason is named.
    """

    backfill_id: str
    decision: str
    by: str
    because: str
    counts: str | None = None

    def __post_init__(self) -> None:
        if self.decision not in _MADE:
            raise UsageError(f"decision {self.decision!r}: expected {' or '.join(_MADE)}")
        require_signed(self.by, self.because)


class ComparedAgainError(ClickmillError):
    """A person decided on counts that are others by now; ``backfill`` has the new comparison."""

    def __init__(self, backfill: Backfill) -> None:
        super().__init__(
            f"the decision on {backfill.described} is not for the counts that there are: hours were counted again "
            f"since; look at the new comparison, reports/backfills/{backfill.id}.html, and decide again"
        )
        self.backfill = backfill


def decide(spark: SparkSession, settings: Settings, decision: BackfillDecision) -> list[str]:
    """Put the decision on record and carry it out; returns a few lines on what was done.

    The same decision a second time finishes what the first one may have left undone.

    Raises:
        ComparedAgainError: if it is for other counts.
        DecidedAlreadyError: if there is nothing to decide any more.
        ClickmillError: if there is nothing to decide yet.
    """
    lake = Lake(spark, settings)
    asked = f"{decision.backfill_id}: {decision.decision}"
    with signed_act(lake, "decide_backfill", asked, decision.by, decision.because) as signed:
        with lake.locked():
            report = _carried_out(signed, decision)
        if report is None:
            backfill = find_backfill(lake, decision.backfill_id)
            raise ComparedAgainError(write_comparison(lake, settings, backfill)[0])
    return report


def _carried_out(signed: SignedAct, decision: BackfillDecision) -> list[str] | None:
    """What was done; None if the counts are others than those decided on."""
    lake = signed.lake
    backfill = find_backfill(lake, decision.backfill_id)
    if not backfill.is_open and backfill.decisions and backfill.decisions[-1].event == _MADE[decision.decision]:
        report = renew_report(lake)
        before = f"{backfill.described}: {backfill.state}, as {backfill.decisions[-1].actor} had decided"
        return [before, f"  report: {report}"]
    _require_open(backfill, decision.decision)
    if decision.decision == DROP:
        return _drop(signed, backfill)
    states = staged_states(lake, backfill)
    is_as_shown = backfill.counts == name_of_counts(states) and decision.counts in (None, backfill.counts)
    if backfill.state == "waiting" and is_as_shown:
        backfill = say(lake, backfill, APPROVED, signed, counts=backfill.counts)
    else:
        signed.begin()
    return swap(lake, backfill, states, signed.act) if backfill.state == "swapping" else None


def _require_open(backfill: Backfill, decision: str) -> None:
    description = backfill.described
    made = [earlier for earlier in backfill.decisions if earlier.event in _MADE.values()]
    if not backfill.is_open or backfill.state == "undoing":
        by = f" by {made[-1].actor}: {made[-1].because}" if made else ""
        raise DecidedAlreadyError(
            f"{description} is {backfill.state}{by}; there is nothing to decide. {backfill.next_step}"
        )
    if decision == DROP and backfill.state == "swapping":
        raise FinalError(
            f"{description} was approved by {made[-1].actor}, and some tables may have it; approve it again, "
            "which does the rest, then undo it"
        )
    if decision == APPROVE and not backfill.is_staged:
        raise FinalError(f"{description} is not staged: what passes the checks is published as its chunks are done")
    if decision == APPROVE and backfill.state == "running":
        raise FinalError(f"{description} has chunks that are not done or not compared; start it again, then decide")


def _drop(signed: SignedAct, backfill: Backfill) -> list[str]:
    """What was counted is not published, by anyone, until it is counted again."""
    lake, act = signed.lake, signed.act
    dropped: list[Hour] = []
    if backfill.is_staged:
        # None of its log hours may have been ingested yet, to the end: then nobody can publish what it counted.
        with suppress(ClickmillError):
            states = staged_states(lake, backfill).values()
            changed = (state for state in states if state.changed_at > backfill.begun_at)
            dropped = drop_counts(signed, backfill, changed, act.because or "")
    followed = follow_hours(lake, dropped)
    say(lake, backfill, DROPPED, signed)
    outcome = (
        f"{len(dropped)} click hours stay as they were published"
        if backfill.is_staged
        else "given up; what its chunks have published stays, and can be undone"
    )
    return [f"{backfill.described}: dropped by {act.actor}; {outcome}", *followed]


def drop_counts(signed: SignedAct, backfill: Backfill, states: Iterable[ClickHourState], because: str) -> list[Hour]:
    """Say of these hours that they stay as they were published; returns those that were not dropped before.

    Until a backfill has again what this one brought, or a person releases them.
    """
    now = datetime.now(UTC)
    dropped = [state for state in states if not state.is_dropped]
    because = f"{backfill.described}: {because}"
    signed.decide(
        [
            event_row(
                signed.act, now, state.hour, DROPPED_HOUR, because,
                findings=state.failures, actor=signed.act.actor, backfill_id=backfill.id,
            )
            for state in dropped
        ]
    )  # fmt: skip
    return [state.hour for state in dropped]


def swap(lake: Lake, backfill: Backfill, states: Mapping[Hour, ClickHourState], act: Act) -> list[str]:
    """Publish all hours of an approved backfill against which nothing speaks, in one commit for each table.

    Hold the lake's lock. ``act`` is what does it: the decision, or the backfill that goes on with it. What was counted
    again since it was approved is published if it passes the checks, as ever.
    """
    states = {**states, **lift(lake, act, states.values())}
    hours = [hour for hour, state in states.items() if state.is_good]
    because = f"no critical check failed; {backfill.described} was approved"
    append_events(lake, judged_rows(act, states.values(), because))
    if hours:
        say_publishing(lake, backfill, hours)

        def say_swapped(table: Table) -> None:
            say(lake, backfill, SWAPPING, table=table.name)

        publish_hours(lake, hours, say_swapped)
    followed = follow_hours(lake, states)
    say(lake, backfill, SWAPPED)
    approved = next(decision for decision in reversed(backfill.decisions) if decision.event == APPROVED)
    held = sum(state.is_held for state in states.values())
    return [
        f"{backfill.described}: approved by {approved.actor}; {len(hours)} click hours published"
        + (f", {held} held at their last good version" if held else ""),
        *(f"  {state.waits_for}" for state in states.values() if state.waits_for),
        *followed,
    ]

"""What a person decides on click hours that are held, done and put on record."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from include.errors import FinalError, NotHeldError, UsageError
from include.holds import (
    DECISIONS,
    HELD,
    PUBLISHED,
    RELEASE,
    RELEASED,
    ClickHourState,
    Failure,
    OtherFindingsError,
    event_row,
    not_shown,
)
from include.hours import Hour, HourRange
from include.job_arguments import require_signed
from include.settings import Settings
from spark_jobs.hours.held_hours import hold_failing, say_held, state_of_hour, states_between
from spark_jobs.lake.journal import SignedAct, append_events, signed_act
from spark_jobs.lake.lake import Lake
from spark_jobs.publish.follow_hours import follow_hours
from spark_jobs.publish.publish_hours import publish_hours

#: What can be decided, and the event that it makes.
OUTCOMES = {**DECISIONS, RELEASE: RELEASED}


@dataclass(frozen=True)
class Decision:
    """What a person decided on a click hour, and why.

    ``shown`` is what the person was shown; None for what is found now.

    Raises:
        UsageError: if it is no decision, or nobody or no reason is named.
    """

    click_hour: Hour
    decision: str
    by: str
    because: str
    shown: tuple[Failure, ...] | None = None

    def __post_init__(self) -> None:
        if self.decision not in OUTCOMES:
            raise UsageError(f"decision {self.decision!r}: expected {' or '.join(OUTCOMES)}")
        require_signed(self.by, self.because)

    @property
    def outcome(self) -> str:
        """The event that it makes."""
        return OUTCOMES[self.decision]


def decide(spark: SparkSession, settings: Settings, decision: Decision) -> list[str]:
    """Put the decision on record, and publish or not; returns a few lines on what was done.

    The same decision a second time finishes what the first one may have left undone, and is not recorded again. Counts
    that are being checked again are published by the run that does so, if it finds nothing worse.

    Raises:
        NotHeldError: if there is nothing to decide.
        OtherFindingsError: if something worse is found than was shown; the answer is on record, and the hour held.
        ClickmillError: if the hour is of a staged backfill that waits for a decision.
    """
    lake = Lake(spark, settings)
    hour = decision.click_hour
    asked = f"{hour}: {decision.decision}"
    with signed_act(lake, "decide_held", asked, decision.by, decision.because) as signed, lake.locked():
        state = state_of_hour(lake, hour)
        if state is None:
            raise NotHeldError(f"{hour} is not held: no log hour has clicks of it")
        lines, is_to_publish = _put_on_record(signed, state, decision)
        if is_to_publish:
            publish_hours(lake, [hour])
        return [*lines, *follow_hours(lake, [hour])]


def decide_range(
    spark: SparkSession, settings: Settings, hours: HourRange, decision: str, by: str, because: str, reason: str = ""
) -> list[str]:
    """The same decision on each click hour of the range about which one can be made, each on record.

    ``reason`` is a text of the findings, such as ``web`` or the name of a check: then it is for those hours of which
    each finding that nobody has answered for has it. One commit for each table.

    Raises:
        NotHeldError: if there is nothing to decide in these hours.
    """
    lake = Lake(spark, settings)
    asked = f"{hours}: {decision}"
    with signed_act(lake, "decide_held", asked, by, because) as signed, lake.locked():
        chosen: list[ClickHourState] = []
        left: list[ClickHourState] = []
        for state in states_between(lake, hours):
            if not _is_to_decide(state, decision):
                continue
            (chosen if _has(state, decision, reason) and not state.staged_by else left).append(state)
        left_out = [line for state in left for line in _left_out(state)]
        if not chosen:
            with_reason = f" with {reason!r} in all of its findings" if reason else ""
            raise NotHeldError("\n  ".join([f"no hour of {hours} waits for that decision{with_reason}", *left_out]))
        signed.details["click_hours"] = ", ".join(str(state.hour) for state in chosen)
        lines, to_publish = [], []
        for state in chosen:
            of_hour, is_to_publish = _put_on_record(signed, state, Decision(state.hour, decision, by, because))
            lines += of_hour
            to_publish += [state.hour] if is_to_publish else []
        if to_publish:
            publish_hours(lake, to_publish)
        return [*lines, *left_out, *follow_hours(lake, [state.hour for state in chosen])]


def _left_out(state: ClickHourState) -> list[str]:
    if not state.described_failures:
        return [f"{state.hour} stays as it is: {state.staged_by}"]
    return [f"{state.hour} stays as it is:", *(f"  {finding}" for finding in state.described_failures)]


def _has(state: ClickHourState, decision: str, reason: str) -> bool:
    """Whether that text is in each finding to be decided on, or in why it was decided so."""
    if decision == RELEASE:
        return state.answer is not None and reason in state.answer.because
    return all(reason in f"{failure.reason}\n{failure.described}" for failure in state.not_answered)


def _is_to_decide(state: ClickHourState, decision: str) -> bool:
    return state.answer is not None if decision == RELEASE else state.is_held


def _put_on_record(signed: SignedAct, state: ClickHourState, decision: Decision) -> tuple[list[str], bool]:
    """Say first, then do: see publish_clicks. Returns what was decided, and whether it is to be published now."""
    answer, act = state.answer, signed.act
    if state.is_decided and answer is not None and answer.outcome == decision.outcome:
        signed.begin()
        is_good = decision.decision == "publish" and not state.waits_for and not state.staged_by
        return _lines(state, decision.decision, f"(as {answer.actor} had decided)"), is_good
    _require_to_decide(state, decision.decision)
    shown = state.failures if decision.shown is None else decision.shown
    if decision.decision != RELEASE and (others := not_shown(state.failures, shown)):
        refused = f"the answer of {act.actor}, {decision.decision}: {act.because}, was not carried out"
        signed.begin()
        raise OtherFindingsError(say_held(signed.lake, act, [state], refused)[state.hour], others, shown)
    note = state.waits_for if decision.decision == "publish" else None
    signed.decide(
        [
            event_row(
                act, datetime.now(UTC), state.hour, decision.outcome, act.because or "",
                findings=shown, actor=act.actor, note=note,
            )
        ]
    )  # fmt: skip
    if decision.decision == RELEASE:
        return _released(signed, state.hour)
    return _lines(state, decision.decision, f"by {act.actor}"), decision.decision == "publish" and not state.waits_for


def _released(signed: SignedAct, hour: Hour) -> tuple[list[str], bool]:
    """It is judged again, as if nobody had decided."""
    lake, act = signed.lake, signed.act
    again = state_of_hour(lake, hour)
    assert again is not None
    if again.is_held:
        hold_failing(lake, act, [again])
        return _lines(again, RELEASE, f"by {act.actor}; held, because critical checks fail: decide again"), False
    if again.can_be_published:
        because = f"no critical check failed; released by {act.actor}"
        append_events(lake, [event_row(act, datetime.now(UTC), again.hour, PUBLISHED, because)])
    return _lines(again, RELEASE, f"by {act.actor}"), again.can_be_published


_DONE = {
    "publish": "published anyway",
    "drop": "dropped; what was published before stays",
    RELEASE: "released",
}


def _lines(state: ClickHourState, decision: str, how: str) -> list[str]:
    later = [f"  {state.waits_for}"] if state.waits_for and decision != "drop" else []
    return [
        f"{state.hour}: {_DONE[decision]} {how}",
        *later,
        *(f"  {failure.described}" for failure in state.failures),
    ]


def _require_to_decide(state: ClickHourState, decision: str) -> None:
    if not _is_to_decide(state, decision):
        status = "has no decision to release" if decision == RELEASE else "is not held"
        raise NotHeldError(f"{state.hour} {status}: {_became(state)}")
    if state.staged_by:
        raise FinalError(f"{state.hour} is of the staged backfill {state.staged_by}: approve or drop that first")


def _became(state: ClickHourState) -> str:
    if state.answer:
        return state.answer.described
    if state.event is None:
        return "no critical check failed"
    if state.event.outcome == HELD:
        return "it is held" if state.is_held else "no critical check fails any more; publish_clicks publishes it"
    return state.event.described

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
from include.job_arguments import require_signed
from include.log_hours import Hour, HourRange
from include.settings import Settings
from spark_jobs.engine.run_ids import new_run_id
from spark_jobs.hours.held_hours import hold_failing, say_held, state_of_hour, states_between
from spark_jobs.hours.quality_results import append_results
from spark_jobs.lake.audit import audited
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
    with audited(lake, "decide_held", asked, decision.by, decision.because), lake.locked():
        state = state_of_hour(lake, hour)
        if state is None:
            raise NotHeldError(f"{hour} is not held: no log hour has clicks of it")
        lines, is_to_publish = _put_on_record(lake, state, decision)
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
    with audited(lake, "decide_held", asked, by, because) as details, lake.locked():
        chosen: list[ClickHourState] = []
        left: list[ClickHourState] = []
        for state in states_between(lake, hours):
            if not _is_to_decide(state, decision):
                continue
            (chosen if _has(state, decision, reason) and not state.staged_by else left).append(state)
        left_out = [f"{state.hour} stays as it is: {'; '.join(state.said) or state.staged_by}" for state in left]
        if not chosen:
            of_what = f" with {reason!r} in all of its findings" if reason else ""
            raise NotHeldError("; ".join([f"no hour of {hours} waits for that decision{of_what}", *left_out]))
        details["click_hours"] = ", ".join(str(state.hour) for state in chosen)
        lines, to_publish = [], []
        for state in chosen:
            said, is_to_publish = _put_on_record(lake, state, Decision(state.hour, decision, by, because))
            lines += said
            to_publish += [state.hour] if is_to_publish else []
        if to_publish:
            publish_hours(lake, to_publish)
        return [*lines, *left_out, *follow_hours(lake, [state.hour for state in chosen])]


def _has(state: ClickHourState, decision: str, reason: str) -> bool:
    """Whether that text is in each finding to be decided on, or in why it was decided so."""
    if decision == RELEASE:
        return state.answer is not None and reason in state.answer.because
    return all(reason in f"{failure.reason}\n{failure.said}" for failure in state.not_answered)


def _is_to_decide(state: ClickHourState, decision: str) -> bool:
    return state.answer is not None if decision == RELEASE else state.is_held


def _put_on_record(lake: Lake, state: ClickHourState, decision: Decision) -> tuple[list[str], bool]:
    """Say first, then do: see publish_clicks. Returns what was decided, and whether it is to be published now."""
    answer, by = state.answer, decision.by.strip()
    if state.is_decided and answer is not None and answer.outcome == decision.outcome:
        is_good = decision.decision == "publish" and not state.waits_for and not state.staged_by
        return _lines(state, decision.decision, f"(as {answer.actor} had decided)"), is_good
    _require_to_decide(state, decision.decision)
    now = datetime.now(UTC)
    run_id = new_run_id(now)
    shown = state.failures if decision.shown is None else decision.shown
    if decision.decision != RELEASE and (others := not_shown(state.failures, shown)):
        refused = f"the answer of {by}, {decision.decision}: {decision.because.strip()}, was not carried out"
        raise OtherFindingsError(say_held(lake, run_id, [state], refused)[state.hour], others, shown)
    event = event_row(
        run_id, now, state.hour, decision.outcome, decision.because.strip(),
        findings=shown, actor=by, note=state.waits_for if decision.decision == "publish" else None,
    )  # fmt: skip
    if decision.decision == RELEASE:
        return _released(lake, state, event, by)
    append_results(lake, [event])
    return _lines(state, decision.decision, f"by {by}"), decision.decision == "publish" and not state.waits_for


def _released(lake: Lake, state: ClickHourState, event: dict[str, object], by: str) -> tuple[list[str], bool]:
    """It is judged again, as if nobody had decided."""
    append_results(lake, [event])
    again = state_of_hour(lake, state.hour)
    assert again is not None
    if again.is_held:
        hold_failing(lake, str(event["run_id"]), [again])
        return _lines(again, RELEASE, f"by {by}; held, because critical checks fail: decide again"), False
    if again.can_be_published:
        now = datetime.now(UTC)
        because = f"no critical check failed; released by {by}"
        append_results(lake, [event_row(new_run_id(now), now, again.hour, PUBLISHED, because)])
    return _lines(again, RELEASE, f"by {by}"), again.can_be_published


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
        *(f"  {failure.said}" for failure in state.failures),
    ]


def _require_to_decide(state: ClickHourState, decision: str) -> None:
    if not _is_to_decide(state, decision):
        what = "has no decision to release" if decision == RELEASE else "is not held"
        raise NotHeldError(f"{state.hour} {what}: {_became(state)}")
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

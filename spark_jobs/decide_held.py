"""Decide on a held click hour: publish it as it is counted, or drop the new counts and keep what is published.

The decision is for the counts that there are now, and the command says what the checks have found in them. When the
hour is counted again it is judged again: held again if a critical check fails still, published if none does. Who
decided, when and why is kept in quality_results.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from include.command import described_parser, exit_with
from include.errors import ClickmillError, FinalError, NotHeldError, UsageError
from include.holds import DECISIONS, HELD, ClickHourState, OtherCountsError, event_row
from include.job_arguments import add_signature, require_signed
from include.log_hours import Hour
from include.settings import Settings
from spark_jobs.engine.run_ids import new_run_id
from spark_jobs.engine.session import spark_session
from spark_jobs.ingest.touched_hours import log_hours_touching
from spark_jobs.lake.audit import audited
from spark_jobs.lake.lake import Lake
from spark_jobs.publish.follow_hours import follow_hours
from spark_jobs.publish.publish_hours import publish_hours
from spark_jobs.quality.held_hours import click_hour_states, say_held
from spark_jobs.quality.results import append_results


@dataclass(frozen=True)
class Decision:
    """What a person decided on a click hour, and why.

    ``counts`` are those that the person was asked about, as ``ClickHourState.counts`` names them; None for a decision
    on those that there are.

    Raises:
        UsageError: if it is no decision, or nobody or no reason is named.
    """

    click_hour: Hour
    decision: str
    by: str
    because: str
    counts: str | None = None

    def __post_init__(self) -> None:
        if self.decision not in DECISIONS:
            raise UsageError(f"decision {self.decision!r}: expected {' or '.join(DECISIONS)}")
        require_signed(self.by, self.because)

    @property
    def outcome(self) -> str:
        """The event that it makes."""
        return DECISIONS[self.decision]


def run(spark: SparkSession, settings: Settings, decision: Decision) -> list[str]:
    """Put the decision on record, and publish or not; returns a few lines on what was done.

    The same decision a second time finishes what the first one may have left undone, and is not recorded again.

    Raises:
        NotHeldError: if the click hour is not held.
        OtherCountsError: if the decision is for other counts; that those that there are are held is on record then.
        ClickmillError: if the click hour is being counted or validated again.
    """
    lake = Lake(spark, settings)
    hour = decision.click_hour
    asked = f"{hour}: {decision.decision}"
    with audited(lake, "decide_held", asked, decision.by, decision.because), lake.locked():
        log_hours = log_hours_touching(lake, hour)
        if not log_hours:
            raise NotHeldError(f"{hour} is not held: no log hour has clicks of it")
        state = click_hour_states(lake, {hour: log_hours})[hour]
        is_made = state.is_decided and state.event is not None and state.event.outcome == decision.outcome
        if not is_made:
            _require_held(state)
            now = datetime.now(UTC)
            if decision.counts not in (None, state.counts):
                recorded = state if state.is_recorded else say_held(lake, new_run_id(now), [state])[hour]
                raise OtherCountsError(recorded)
            # First what is said, then what is done: see publish_clicks.
            append_results(
                lake,
                [
                    event_row(
                        new_run_id(now),
                        now,
                        hour,
                        decision.outcome,
                        decision.because.strip(),
                        examples=state.said,
                        actor=decision.by.strip(),
                    )
                ],
            )
        if decision.decision == "publish":
            publish_hours(lake, [hour])
        followed = follow_hours(lake, [hour])
    what = "published anyway" if decision.decision == "publish" else "dropped; what was published before stays"
    before = f" (as {state.event.actor} had decided)" if is_made and state.event else f" by {decision.by.strip()}"
    return [f"{hour}: {what}{before}", *(f"  {failure.said}" for failure in state.failures), *followed]


def _require_held(state: ClickHourState) -> None:
    if not state.is_held:
        raise NotHeldError(f"{state.hour} is not held: {_became(state)}")
    if state.waits_for:
        raise ClickmillError(f"{state.waits_for}; decide when that is done")
    if state.staged_by:
        raise FinalError(f"{state.hour} is of the staged backfill {state.staged_by}: approve or drop that first")


def _became(state: ClickHourState) -> str:
    event = state.event
    if event is None:
        return "no critical check failed"
    if event.outcome == HELD:
        return "no critical check fails any more; publish_clicks publishes it"
    by = f" by {event.actor}: {event.because}" if event.actor else ""
    return f"{event.outcome.replace('_', ' ')} at {event.at:%Y-%m-%d %H:%M} UTC{by}"


def _parse(argv: list[str] | None = None) -> Decision:
    parser = described_parser(
        "spark_jobs.decide_held",
        __doc__,
        "hours are UTC. exit codes: 0 done, 1 failed, or the hour is not held, 2 wrong arguments",
    )
    parser.add_argument("--hour", required=True, metavar="HOUR", help="the click hour, such as 2026-03-01T05")
    parser.add_argument(
        "--decision", required=True, choices=DECISIONS, help="publish it anyway, or drop the new counts"
    )
    add_signature(parser)
    given = parser.parse_args(argv)
    return Decision(Hour.parse(given.hour), given.decision, given.by, given.because)


def main() -> None:
    """The job from a shell."""
    decision = _parse()
    settings = Settings.from_environment()
    with spark_session(settings) as spark:
        print(*run(spark, settings, decision), sep="\n")


if __name__ == "__main__":
    exit_with(main)

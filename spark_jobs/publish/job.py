"""The validated click hours that log hours touch: published, or held at their last good version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from include.backfills import Backfill
from include.errors import QualityError
from include.holds import ClickHourState
from include.hours import Hour, as_ranges
from include.job_arguments import JobArguments
from include.settings import Settings
from include.sources import choose_sources
from spark_jobs.hours.held_hours import click_hour_states, hold_failing, judged_rows, lift
from spark_jobs.hours.touched_hours import touched_click_hours
from spark_jobs.lake.journal import append_events, new_act
from spark_jobs.lake.lake import Lake
from spark_jobs.publish.follow_hours import follow_hours
from spark_jobs.publish.publish_hours import publish_hours

_RELEASE = "clickmill decide --hour {hour} --decision release --help"


@dataclass(frozen=True)
class Published:
    """What was done: a few lines on it, the click hours that are held, and why others stay as they were."""

    lines: list[str]
    held: list[ClickHourState]
    left: dict[str, str]


def publish(
    spark: SparkSession,
    settings: Settings,
    arguments: JobArguments,
    before: Callable[[Lake, list[Hour]], None] = lambda lake, hours: None,
    by: Backfill | None = None,
) -> Published:
    """Publish the click hours that the log hours touch and that may be read; say which of the others are held.

    ``before`` is called with the click hours that are about to be published, if there are some. ``by`` is the backfill
    that does so, if one does.

    Raises:
        QualityError: if one of them was never validated; then none is published.
    """
    lake = Lake(spark, settings)
    # Between the look at the results and the writing, no hour may be counted again.
    with lake.locked():
        touched = touched_click_hours(lake, choose_sources(settings, arguments.source), arguments.log_hours)
        states = click_hour_states(lake, touched.log_hours_of, by)
        _require_validated([states[hour] for hour in touched.own])
        act = new_act("publish_clicks")
        states |= lift(lake, act, states.values())
        # Said again if validate_clicks was killed before it could say so.
        states |= hold_failing(lake, act, states.values())
        hours = [hour for hour, state in states.items() if state.can_be_published]
        # First what is said, then what is done: killed in between, nothing is published that is not on record, and
        # the same job run again does it.
        judged = [state for state in states.values() if not state.staged_by]
        append_events(lake, judged_rows(act, judged, "no critical check failed"))
        if hours:
            before(lake, hours)
            publish_hours(lake, hours)
        # Of a log hour without clicks too: its day may have all hours now.
        followed = follow_hours(lake, {*states, *arguments.log_hours})
    held = [state for state in states.values() if state.is_held]
    return Published(
        [
            f"log hours {arguments.log_hours}: {len(hours)} click hours published"
            + (f", {len(held)} held at their last good version" if held else ""),
            *(line for state in states.values() for line in _remarks(state)),
            *followed,
        ],
        held,
        {str(hour): _why(state) for hour, state in states.items() if not state.can_be_published},
    )


def _why(state: ClickHourState) -> str:
    """Why a click hour stays as it was published, without what people have written."""
    if state.staged_by:
        return f"staged by backfill {state.staged_by}"
    return "held" if state.is_held else "dropped" if state.is_dropped else state.waits_for or "not to be published"


def _require_validated(states: list[ClickHourState]) -> None:
    missing = sorted(state.hour for state in states if not state.was_validated)
    if missing:
        raise QualityError(
            f"nothing is published: {as_ranges(missing)}: not validated; run: clickmill validate --from {missing[0]} "
            f"--to {missing[-1].plus(1)}, and ingest and aggregate before it where they have not been run"
        )


def _remarks(state: ClickHourState) -> list[str]:
    """Why a click hour is not published, or though a check failed; nothing for one that is as it should be."""
    if state.staged_by:
        return [f"  {state.hour} is not published: it waits for a decision on the staged backfill {state.staged_by}"]
    if state.is_held:
        return [
            f"  {state.hour} is held; to decide: clickmill decide --hour {state.hour} --help",
            *(f"    {failure.described}" for failure in state.failures),
        ]
    if state.answer:
        outcome = "not published: dropped" if state.is_dropped else "published anyway"
        return [
            f"  {state.hour} is {outcome} by {state.answer.actor}: {state.answer.because}",
            *([f"    to publish it: {_RELEASE.format(hour=state.hour)}, or backfill it"] if state.is_dropped else []),
        ]
    return [f"  {state.waits_for}"] if state.waits_for else []

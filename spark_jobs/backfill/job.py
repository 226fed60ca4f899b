"""A backfill from its plan to its comparison."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console

from include.backfills import Backfill, read_backfills
from include.documents.terminal import print_line
from include.errors import ClickmillError, QualityError
from include.holds import ClickHourState
from include.settings import Settings
from spark_jobs.backfill.chunks import end_chunks, require_done, run_chunk
from spark_jobs.backfill.compare import staged_states
from spark_jobs.backfill.comparison_page import as_lines, write_comparison
from spark_jobs.backfill.decide import swap
from spark_jobs.backfill.plan import Plan, Request, expected_seconds, make_plan
from spark_jobs.backfill.record import begin, find_backfill
from spark_jobs.backfill.shown_plan import as_duration, print_plan
from spark_jobs.hours.held_hours import hold_failing
from spark_jobs.lake.journal import new_act
from spark_jobs.lake.lake import Lake


@dataclass(frozen=True)
class Ended:
    """A backfill of which the chunks are done, a few lines on it, and its comparison; None if it has none."""

    backfill: Backfill
    lines: list[str]
    page: Path | None = None


def plan(settings: Settings, request: Request) -> Plan:
    """What the backfill would do; changes nothing, and needs no Spark."""
    return make_plan(Lake(None, settings), settings, request)


def start(spark: SparkSession, settings: Settings, plan: Plan, *, because: str, actor: str | None = None) -> Backfill:
    """Begin the backfill of a plan, or go on with it.

    Raises:
        ClickmillError: if something blocks it; then nothing is changed.
    """
    if plan.blocks:
        raise ClickmillError("\n  ".join(plan.blocks))
    request = plan.request
    lake = Lake(spark, settings)
    return begin(
        lake,
        request.source,
        request.log_hours,
        request.chunk_hours,
        is_staged=request.is_staged,
        actor=actor,
        because=because,
    )


def end(spark: SparkSession, settings: Settings, backfill_id: str) -> Ended:
    """Once all chunks are done: compare a staged backfill, and say of another that it has ended.

    One that was approved, and interrupted then, is published.

    Raises:
        ClickmillError: if some chunks are not done.
    """
    lake = Lake(spark, settings)
    backfill = find_backfill(lake, backfill_id)
    if not backfill.is_staged:
        backfill = end_chunks(lake, settings, backfill)
        return Ended(backfill, [f"{backfill.described}: {backfill.state}", f"  {backfill.next_step}"])
    require_done(lake, settings, backfill)
    if backfill.state == "swapping":
        with lake.locked():
            lines = swap(lake, backfill, staged_states(lake, backfill), new_act("backfill_clicks"))
            return Ended(find_backfill(lake, backfill_id), lines)
    if backfill.state not in ("running", "waiting"):
        return Ended(backfill, [f"{backfill.described} is {backfill.state}. {backfill.next_step}"])
    backfill, comparison, page = write_comparison(lake, settings, backfill)
    return Ended(backfill, as_lines(comparison), page)


def held(spark: SparkSession, settings: Settings, backfill_id: str) -> list[ClickHourState]:
    """The click hours of a backfill that are held, and about which a person is to be asked."""
    lake = Lake(spark, settings)
    with lake.locked():
        states = staged_states(lake, find_backfill(lake, backfill_id))
        # Said again if validate_clicks was killed before it could say so.
        states |= hold_failing(lake, new_act("backfill_clicks"), states.values())
    return [state for state in states.values() if state.is_held and not (state.waits_for or state.staged_by)]


def run(spark: SparkSession, settings: Settings, request: Request, because: str, console: Console) -> None:
    """Plan, chunks and end, with what is done printed.

    Raises:
        QualityError: if critical checks failed; all that could be done has been.
    """
    planned = plan(settings, request)
    print_plan(planned, console)
    backfill = start(spark, settings, planned, because=because)
    print_line(console, f"{backfill.described}: {len(planned.chunks)} chunks to run", style="bold")
    failures: list[str] = []
    for number, chunk in enumerate(planned.chunks, 1):
        done = run_chunk(spark, settings, backfill.id, chunk.log_hours)
        failures += done.failures
        left = expected_seconds(read_backfills(settings.lake), planned.chunks[number:])
        rest = f"; about {as_duration(left)} left" if left else ""
        print_line(console, f"chunk {number} of {len(planned.chunks)}: {done.lines[0]}{rest}")
        for failure in done.failures:
            print_line(console, f"  {failure}", style="red")
    ended = end(spark, settings, backfill.id)
    for line in [*ended.lines, *([f"old against new: {ended.page}"] if ended.page else [])]:
        print_line(console, line)
    if ended.backfill.state in ("waiting", "swapping"):
        command = f"clickmill decide-backfill {backfill.id} --decision approve --by NAME --because TEXT"
        print_line(console, f"to publish it: {command}    # or --decision drop")
    if failures:
        raise QualityError(f"critical checks failed in {len(failures)} places: what they touch is held, see above")

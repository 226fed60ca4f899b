"""The work of a backfill: chunk by chunk through the four jobs; each can be killed, and is then done again."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from pyspark.sql import SparkSession

from include.backfills import CHUNK_DONE, FINISHED, Backfill
from include.errors import FinalError, QualityError
from include.holds import ClickHourState
from include.hours import HourRange
from include.job_arguments import JobArguments
from include.settings import Settings
from include.tables import INGEST_ACCOUNTING
from spark_jobs.backfill.plan import Chunk, Request, chunk_of, make_plan
from spark_jobs.backfill.record import find_backfill, say, say_publishing
from spark_jobs.grouping.load import aggregate_measured
from spark_jobs.ingest.job import ingest
from spark_jobs.lake.lake import Lake
from spark_jobs.publish.job import publish
from spark_jobs.quality.job import require_valid


@dataclass(frozen=True)
class ChunkRun:
    """What a chunk did: a few lines, the critical checks that failed, and the click hours that are held by that."""

    lines: list[str]
    failures: list[str]
    held: list[ClickHourState]


def run_chunk(spark: SparkSession, settings: Settings, backfill_id: str, log_hours: HourRange) -> ChunkRun:
    """Ingest, count, validate and, unless staged, publish what has landed of these log hours, if it is not done.

    That critical checks fail holds the click hours that they touch, as ever, and is no error.

    Raises:
        ClickmillError: if the backfill is not running, or a job failed.
    """
    lake = Lake(spark, settings)
    # Started twice, as in a shell and in Airflow, they share the chunks.
    with lake.locked(f"backfill-{backfill_id}-{log_hours.start}"):
        backfill = find_backfill(lake, backfill_id)
        if log_hours.start in backfill.done:
            return ChunkRun([f"log hours {log_hours}: done already"], [], [])
        if backfill.state != "running":
            raise FinalError(f"{backfill.described} is {backfill.state}: its chunks are not run any more")
        began = perf_counter()
        chunk = chunk_of(lake, settings, backfill.source, log_hours)
        runs = [_run_range(spark, settings, lake, backfill, hours) for hours in chunk.ranges()]
        seconds = perf_counter() - began
        lines = _lines_of(lake, backfill, chunk)
        say(
            lake, backfill, CHUNK_DONE,
            chunk=str(log_hours.start), log_hours=len(chunk.landed), lines=lines, bytes=chunk.size_bytes,
            seconds=seconds,
        )  # fmt: skip
    failures = [failure for run in runs for failure in run.failures]
    return ChunkRun(
        [
            f"log hours {log_hours}: {len(chunk.landed)} log hours, {lines:,} lines in {seconds:.1f} s"
            + ("; critical checks failed" if failures else ""),
            *(line for run in runs for line in run.lines),
        ],
        failures,
        [state for run in runs for state in run.held],
    )


def _run_range(
    spark: SparkSession, settings: Settings, lake: Lake, backfill: Backfill, log_hours: HourRange
) -> ChunkRun:
    arguments = JobArguments(backfill.source, log_hours)
    failures: list[str] = []
    lines = [
        *ingest(spark, settings, arguments),
        *aggregate_measured(spark, settings, arguments),
    ]
    try:
        lines += require_valid(spark, settings, arguments)
    except QualityError as error:
        failures.append(str(error))
    if backfill.is_staged:
        return ChunkRun(lines, failures, [])
    published = publish(spark, settings, arguments, lambda lake, hours: say_publishing(lake, backfill, hours), backfill)
    return ChunkRun([*lines, *published.lines], failures, published.held)


def _lines_of(lake: Lake, backfill: Backfill, chunk: Chunk) -> int:
    accounts = lake.row_by_hour(INGEST_ACCOUNTING, backfill.source, chunk.landed, ["lines"])
    return sum(account["lines"] for account in accounts.values())


def end_chunks(lake: Lake, settings: Settings, backfill: Backfill) -> Backfill:
    """Say of an unstaged backfill that it has finished.

    Raises:
        ClickmillError: if chunks are not done.
    """
    require_done(lake, settings, backfill)
    return say(lake, backfill, FINISHED) if backfill.state == "running" else backfill


def require_done(lake: Lake, settings: Settings, backfill: Backfill) -> None:
    """Of a running backfill, all chunks in which anything landed must be done.

    Raises:
        ClickmillError: if some are not.
    """
    if backfill.state != "running":
        return
    request = Request(backfill.source, backfill.log_hours, backfill.chunk_hours, backfill.is_staged)
    left = [str(chunk.log_hours) for chunk in make_plan(lake, settings, request).chunks]
    if left:
        raise FinalError(f"{backfill.described}: {len(left)} chunks are not done, {left[0]} first; start it again")

"""Run a range of log hours again, in chunks: plan, ingest, count, validate and publish.

First the plan is printed; with --dry-run that is all. Killed anywhere and started again with the same arguments, it
goes on. Log hours of the range that never landed are left out. With --staged nothing is published: the new counts are
compared with what is published, on a page, and a person decides with spark_jobs.decide_backfill. What has been
published can be undone with spark_jobs.undo_backfill.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from include.command import described_parser, exit_with
from include.job_arguments import LOG_HOURS_EPILOG, JobArguments
from include.settings import Settings
from include.sources import choose_sources
from spark_jobs.backfill.job import plan, run
from spark_jobs.backfill.plan import Request
from spark_jobs.backfill.shown_plan import print_plan
from spark_jobs.engine.session import spark_session


@dataclass(frozen=True)
class _Given:
    request: Request
    because: str
    is_dry_run: bool


def _parse(argv: Sequence[str] | None = None) -> _Given:
    parser = described_parser("spark_jobs.backfill_clicks", __doc__, LOG_HOURS_EPILOG)
    parser.add_argument("--source", required=True, help="a source of config/sources.toml")
    parser.add_argument("--from", dest="start", required=True, metavar="HOUR", help="first log hour: 2026-03-01T00")
    parser.add_argument("--to", dest="end", required=True, metavar="HOUR", help="the log hour after the last one")
    parser.add_argument("--chunk", type=int, default=168, metavar="HOURS", help="log hours at a time; default 168")
    parser.add_argument("--staged", action="store_true", help="publish nothing before a person approves it")
    parser.add_argument("--because", default="", metavar="TEXT", help="why; kept on record")
    parser.add_argument("--dry-run", action="store_true", help="print the plan and end")
    given = parser.parse_args(argv)
    log_hours = JobArguments.of(given.source, given.start, given.end).log_hours
    return _Given(Request(given.source, log_hours, given.chunk, given.staged), given.because, given.dry_run)


def main() -> None:
    """The job from a shell."""
    given = _parse()
    settings = Settings.from_environment()
    choose_sources(settings, given.request.source)
    _ = settings.pipeline
    console = Console(highlight=False)
    with spark_session(settings) as spark:
        if given.is_dry_run:
            print_plan(plan(spark, settings, given.request), console)
        else:
            run(spark, settings, given.request, given.because, console)


if __name__ == "__main__":
    exit_with(main)

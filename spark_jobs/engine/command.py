"""A job over log hours, run from a shell."""

from __future__ import annotations

from collections.abc import Callable

from include.command import OneLineParser
from include.job_arguments import JobArguments, job_parser
from include.settings import Settings
from include.sources import choose_sources
from spark_jobs.engine.session import spark_session


def run_from_shell(
    module: str,
    description: str | None,
    run: Callable[..., list[str]],
    add_options: Callable[[OneLineParser], object] = lambda parser: None,
) -> None:
    """Run a job with the shell's arguments, and print what it did.

    ``run`` takes session, settings and arguments, and what ``add_options`` adds to the parser by name.

    Raises:
        ClickmillError: if the arguments are wrong, found before any session is asked for, or the job failed.
    """
    parser = job_parser(module, description)
    add_options(parser)
    given = vars(parser.parse_args())
    arguments = JobArguments.of(*(given.pop(name) for name in ("source", "start", "end", "hour")))
    settings = Settings.from_environment()
    choose_sources(settings, arguments.source)
    _ = settings.pipeline
    with spark_session(settings) as spark:
        print(*run(spark, settings, arguments, **given), sep="\n")

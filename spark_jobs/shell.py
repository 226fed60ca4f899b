"""A job over log hours, run from a shell."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from include.job_arguments import JobArguments, parse_job_arguments
from include.settings import Settings
from include.sources import choose_sources
from spark_jobs.session import spark_session


def run_from_shell(
    module: str, description: str | None, run: Callable[[SparkSession, Settings, JobArguments], list[str]]
) -> None:
    """Run a job with the shell's arguments, and print what it did.

    Raises:
        ClickmillError: if the arguments are wrong, found before any session is asked for, or the job failed.
    """
    arguments = parse_job_arguments(module, description)
    settings = Settings.from_environment()
    choose_sources(settings, arguments.source)
    with spark_session(settings) as spark:
        print(*run(spark, settings, arguments), sep="\n")

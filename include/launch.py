"""How a DAG's task runs a job: its hours and source from the run, its module by name, its words into the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from include.errors import QualityError, UsageError
from include.job_arguments import JobArguments
from include.landing import is_ready
from include.settings import Settings
from include.sources import choose_sources

log = logging.getLogger("clickmill")


def arguments_of_run(params: Mapping[str, Any], partition_key: str | None) -> JobArguments:
    """The form's ``from`` and ``to`` where they are given, else the run's own partition.

    Raises:
        UsageError: if neither is there.
    """
    start, end = params.get("from"), params.get("to")
    if start or end:
        return JobArguments.of(params["source"], start, end)
    if partition_key:
        return JobArguments.of(params["source"], None, None, hour=partition_key)
    raise UsageError("this run has no partition: fill in from and to when you trigger it by hand")


def is_landed(params: Mapping[str, Any], partition_key: str | None) -> bool:
    """Whether all log hours of the run are closed, or past their grace time."""
    settings = Settings.from_environment()
    now = datetime.now(UTC)
    with _final_errors():
        arguments = arguments_of_run(params, partition_key)
        sources = choose_sources(settings, arguments.source)
    waiting = [
        f"{source.name} {hour}"
        for source in sources
        for hour in arguments.log_hours
        if not is_ready(settings.landing, source, hour, now)
    ]
    log.info("waiting for _SUCCESS of: %s", ", ".join(waiting) or "nothing")
    return not waiting


def run_job(job: str, params: Mapping[str, Any], partition_key: str | None, spark: Any, **options: Any) -> None:
    """Run ``spark_jobs.<job>`` in this Spark session.

    Raises:
        AirflowFailException: for what trying again cannot mend: wrong arguments, or a critical check that failed.
    """
    module = import_module(f"spark_jobs.{job}")
    settings = Settings.from_environment()
    import_module("spark_jobs.session").configure(spark)
    with _final_errors():
        for line in module.run(spark, settings, arguments_of_run(params, partition_key), **options):
            log.info(line)
    log.info("report: %s", (settings.reports / "report.html").as_uri())


@contextmanager
def _final_errors() -> Iterator[None]:
    """Let Airflow not try again what trying again cannot mend."""
    from airflow.sdk.exceptions import AirflowFailException

    try:
        yield
    except (UsageError, QualityError) as error:
        raise AirflowFailException(str(error)) from error

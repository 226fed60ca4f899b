"""How a DAG's task runs a job: in its session, its words into the log, its errors in one line."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from dags.tasks.notes import leave_note
from include.errors import FinalError, QualityError, UsageError, in_one_line
from include.settings import Settings

log = logging.getLogger("clickmill")

#: The name of a task that names itself after what it has announced.
NAME_BY_ANNOUNCEMENT = "{{ announcement | default('') }}"
#: Airflow keeps so many characters of it.
_MOST_CHARACTERS = 250


@contextmanager
def job_settings(spark: Any) -> Iterator[Settings]:
    """The settings for a job, once the session is as jobs need it.

    Raises:
        AirflowFailException: for what trying again cannot fix, as ``final_errors`` says.
    """
    from spark_jobs.engine.session import configure

    configure(spark)
    with final_errors():
        yield Settings.from_environment()


def log_lines(lines: Iterable[str], report_of: Settings | None = None) -> None:
    """Say what a job did, and where the report is if it has changed that."""
    for line in lines:
        log.info(line)
    if report_of:
        log.info("report: %s", report_of.report.as_uri())


@contextmanager
def final_errors() -> Iterator[None]:
    """Let Airflow not try again what trying again cannot fix, and say in one line what a person can act on.

    Raises:
        AirflowFailException: for wrong arguments, failed checks and what a job says is final.
    """
    from airflow.sdk.exceptions import AirflowFailException

    try:
        yield
    except (UsageError, QualityError, FinalError) as error:
        raise AirflowFailException(announce(str(error))) from error
    except Exception as error:
        line = in_one_line(error)
        if line is None or line is error:
            raise
        raise line from error


def announce(text: str) -> str:
    """The text, which becomes the run's note, and the name of a task that is named so."""
    leave_note(text)
    with suppress(Exception):
        from airflow.sdk import get_current_context

        get_current_context()["announcement"] = text[:_MOST_CHARACTERS]  # type: ignore[typeddict-unknown-key]
    return text


def signer(dag_run: Any) -> str:
    """Who has triggered this run: what it does is signed with the name, and on record in the journal.

    Who may trigger which DAG, Airflow's permissions say.

    Raises:
        UsageError: if nobody has, but a schedule or a program without a user.
    """
    if not dag_run.triggering_user_name:
        raise UsageError("nobody has triggered this run; trigger it in Airflow's UI, or by its API as a user")
    return str(dag_run.triggering_user_name)


def page_address(page: str) -> str:
    """Where a page of Data quality is, such as ``hours/2026-03-01T05``."""
    from airflow.providers.common.compat.sdk import conf

    airflow = conf.get("api", "base_url", fallback="/").rstrip("/")
    return f"{airflow}/plugin/data-quality/data-quality/{page}"

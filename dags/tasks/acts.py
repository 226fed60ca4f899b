"""What a person has done by triggering a DAG: it is signed with the person's name, and on record in the table audit.

Who may trigger which of these DAGs, Airflow's permissions say.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from dags.tasks.launch import final_errors, log_lines
from include.errors import UsageError
from include.job_arguments import JobArguments
from include.settings import Settings


def undo(params: Mapping[str, Any], dag_run: Any, spark: Any) -> None:
    """Undo a backfill.

    Raises:
        AirflowFailException: if nobody has triggered the run, or no reason is given.
    """
    job, settings = _job("spark_jobs.backfill.undo", spark)
    with final_errors():
        by = _signer(dag_run)
        lines = job.undo(spark, settings, params["backfill"], by, params["reason"], force=params["force"])
    log_lines(lines, settings)


def replay(params: Mapping[str, Any], dag_run: Any, spark: Any) -> None:
    """Parse quarantined lines again, or withdraw a replay; or say what that would change.

    Raises:
        AirflowFailException: if nobody has triggered the run, or the form is wrong.
    """
    job, settings = _job("spark_jobs.replay_quarantined", spark)
    with final_errors():
        signed = {"by": _signer(dag_run), "because": params["reason"]}
        if withdrawn := (params["withdraw"] or "").strip():
            lines = job.withdraw(spark, settings, withdrawn, **signed, is_dry_run=params["dry_run"])
        else:
            log_hours = JobArguments.of(params["source"], params["from"], params["to"]).log_hours
            reasons = tuple(sorted(set(params["reasons"])))
            request = job.Request(params["source"], log_hours, reasons, (params["rule"] or "").strip() or None)
            if params["dry_run"]:
                lines = job.dry_run(spark, settings, request)
            else:
                lines = job.run(spark, settings, request, **signed)
    log_lines(lines, settings)


def erase(params: Mapping[str, Any], dag_run: Any, spark: Any) -> None:
    """Erase what an Airflow variable asks for, a request a line; then the variable is removed.

    Raises:
        AirflowFailException: if nobody has triggered the run, or there are no such requests.
    """
    from airflow.sdk import Variable

    job, settings = _job("spark_jobs.erase_visitor", spark)
    name = params["variable"]
    with final_errors():
        by = _signer(dag_run)
        text = Variable.get(name, default=None)
        if text is None:
            raise UsageError(f"there is no variable {name}: expected one with the requests, one a line")
        requests = job.Requests.of_lines(text.splitlines(), f"the variable {name}")
        lines = job.run(spark, settings, requests, by, params["reason"], dry_run=params["dry_run"])
    log_lines(lines, settings)
    if not params["dry_run"]:
        Variable.delete(name)


def _job(module: str, spark: Any) -> tuple[Any, Settings]:
    import_module("spark_jobs.engine.session").configure(spark)
    return import_module(module), Settings.from_environment()


def _signer(dag_run: Any) -> str:
    """Who has triggered this run.

    Raises:
        UsageError: if nobody has, but a schedule or a program without a user.
    """
    if not dag_run.triggering_user_name:
        raise UsageError("nobody has triggered this run; trigger it in Airflow's UI, or by its API as a user")
    return str(dag_run.triggering_user_name)

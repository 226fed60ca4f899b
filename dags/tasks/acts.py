"""What a person has done by triggering a DAG: it is signed with the person's name, and on record in the table audit.

Who may trigger which of these DAGs, Airflow's permissions say.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module
from typing import Any

from dags.tasks.launch import final_errors, log_lines
from dags.tasks.notes import leave_note, skipped
from include.errors import UsageError
from include.job_arguments import JobArguments
from include.settings import Settings

log = logging.getLogger("clickmill")

#: Airflow's variable with the requests of an erasure, unless the form names another.
REQUESTS = "erasure_secret"
#: What can be answered when an erasure is planned.
ERASE, CANCEL = "Erase", "Cancel"


def undo(params: Mapping[str, Any], dag_run: Any, spark: Any) -> None:
    """Undo a backfill.

    Raises:
        AirflowFailException: if nobody has triggered the run, or no reason is given.
    """
    job, settings = _job("spark_jobs.backfill.undo", spark)
    with final_errors():
        by = _signer(dag_run)
        lines = job.undo(spark, settings, params["backfill"].strip(), by, params["reason"], force=params["force"])
    log_lines(lines, settings)


def replay(params: Mapping[str, Any], dag_run: Any, spark: Any) -> None:
    """Parse quarantined lines again, or withdraw a replay; or say what that would change.

    Raises:
        AirflowFailException: if nobody has triggered the run, or the form is wrong.
    """
    job, settings = _job("spark_jobs.replay.job", spark)
    with final_errors():
        signed = {"by": _signer(dag_run), "because": params["reason"]}
        if withdrawn := (params["withdraw"] or "").strip():
            lines = job.withdraw(spark, settings, withdrawn, **signed, is_dry_run=params["dry_run"])
        else:
            log_hours = JobArguments.of(params["source"], params["from"], params["to"]).log_hours
            reasons = tuple(sorted(set(params["reasons"] or ())))
            request = job.Request(params["source"], log_hours, reasons, (params["rule"] or "").strip() or None)
            if params["dry_run"]:
                lines = job.dry_run(spark, settings, request)
            else:
                lines = job.replay(spark, settings, request, **signed)
    log_lines(lines, settings)


def plan_erasure(params: Mapping[str, Any], dag_run: Any, spark: Any) -> dict[str, Any]:
    """What an erasure of what a variable asks for, a request a line, would do; it names nobody.

    Raises:
        AirflowFailException: if nobody has triggered the run, there are no such requests, or nothing is to be erased.
    """
    job, settings = _job("spark_jobs.erase_visitor", spark)
    with final_errors():
        plan = job.plan(spark, settings, requests(job, params), _signer(dag_run), params["reason"])
    for line in plan.lines:
        log.info(line)
    return asdict(plan)


def erase(params: Mapping[str, Any], dag_run: Any, task_instance: Any, spark: Any) -> None:
    """Erase what was planned, if a person has said so; then the variable is removed.

    Raises:
        AirflowSkipException: if it was cancelled.
        AirflowFailException: if the variable is gone, or asks for something else by now.
    """
    from airflow.sdk import Variable

    answer = task_instance.xcom_pull(task_ids="ask")
    answered, asked = str(answer["responded_by_user"]["name"]), _signer(dag_run)
    if answer["chosen_options"] != [ERASE]:
        raise skipped(f"nothing is erased: cancelled by {answered}")
    job, settings = _job("spark_jobs.erase_visitor", spark)
    by = answered if answered == asked else f"{answered}, asked by {asked}"
    with final_errors():
        shown = job.Plan(**task_instance.xcom_pull(task_ids="plan_erasure"))
        lines = job.run(spark, settings, requests(job, params), by, params["reason"], shown=shown)
    log_lines(lines, settings)
    leave_note(" ".join(map(str.strip, lines)))
    Variable.delete((params["variable"] or REQUESTS).strip())


def requests(job: Any, params: Mapping[str, Any]) -> Any:
    """What is asked to be erased, by the variable that the form names.

    Raises:
        UsageError: if Airflow would show what the variable holds, there is none, or a line of it is wrong.
    """
    from airflow.sdk import Variable

    name = (params["variable"] or REQUESTS).strip()
    if "secret" not in name.lower():
        raise UsageError(f"the variable {name}: its name must have secret in it, so that Airflow hides what it holds")
    text = Variable.get(name, default=None)
    if text is None:
        raise UsageError(f"there is no variable {name}: expected one with the requests, one a line")
    return job.Requests.of_lines(text.splitlines(), f"the variable {name}")


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

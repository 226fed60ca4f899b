"""What a person has done by triggering a DAG: it is signed with the person's name, and on record in the table audit.

Who may trigger which of these DAGs, Airflow's permissions say.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from dags.tasks.launch import final_errors, log_lines
from include.errors import UsageError
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

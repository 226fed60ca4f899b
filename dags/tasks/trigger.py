"""Runs of another DAG that a task asks for."""

from __future__ import annotations

from typing import Any


def trigger_each(task_id: str, dag_id: str, runs: Any, **options: Any) -> Any:
    """The task that makes each run of ``dag_id`` that is in ``runs``, a task's output: ``trigger_run_id`` and ``conf``.

    A run that is there already is skipped: what it asks has been asked.
    """
    from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator

    return TriggerDagRunOperator.partial(
        task_id=task_id,
        trigger_dag_id=dag_id,
        # Two of them within one moment would be one run otherwise.
        logical_date=None,
        skip_when_already_exists=True,
        **options,
    ).expand_kwargs(runs)


def ask_about_hours(task_id: str, runs: Any) -> Any:
    """The task that makes runs of held_hours, each named after its hour in Airflow's grid."""
    return trigger_each(task_id, "held_hours", runs, map_index_template="{{ task.conf['hour'] }}")

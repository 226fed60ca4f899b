"""A run of held_hours that starts lets the questions of earlier ones about its hour look again, see dags/tasks/held.py.

Airflow's scheduler calls this in its own session, which it commits afterwards.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any

from airflow.listeners import hookimpl
from airflow.plugins_manager import AirflowPlugin

_DAG, _TASK = "held_hours", "ask"


@hookimpl
def on_dag_run_running(dag_run: Any, msg: str) -> None:
    """Of a run that starts."""
    if dag_run.dag_id == _DAG:
        wake_others(dag_run)


def wake_others(dag_run: Any) -> None:
    """Make the open questions of other runs about the same hour due: Airflow resumes a task whose time is over."""
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.state import DagRunState, TaskInstanceState
    from sqlalchemy import select, update
    from sqlalchemy.orm import object_session

    session, hour = object_session(dag_run), (dag_run.conf or {}).get("hour")
    if session is None:
        return
    running = select(DagRun).where(DagRun.dag_id == _DAG, DagRun.state == DagRunState.RUNNING)
    about_it = [run.run_id for run in session.scalars(running) if (run.conf or {}).get("hour") == hour]
    session.execute(
        update(TaskInstance)
        .where(
            TaskInstance.dag_id == _DAG,
            TaskInstance.task_id == _TASK,
            TaskInstance.run_id.in_(set(about_it) - {dag_run.run_id}),
            TaskInstance.state == TaskInstanceState.AWAITING_INPUT,
        )
        .values(trigger_timeout=datetime.now(UTC))
        .execution_options(synchronize_session=False)
    )


class OvertakenQuestionsPlugin(AirflowPlugin):
    """Lets overtaken questions end."""

    name = "overtaken_questions"
    listeners = [sys.modules[__name__]]  # noqa: RUF012

"""Runs of another DAG that a task asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dags.tasks.launch import announce

#: The key under which a task that did not carry out an answer leaves word of the run that asks again: it fails, and
#: a task that fails has no result.
AGAIN = "again"


def asked_again(task_instance: Any, run: Mapping[str, Any], error: Exception) -> Exception:
    """The failure of a task whose answer is not carried out; it leaves word of the run that asks again."""
    from airflow.sdk.exceptions import AirflowFailException

    task_instance.xcom_push(key=AGAIN, value=run)
    return AirflowFailException(announce(f"not carried out, and asked again: {error}"))


def ask_again(dag_id: str, after: str) -> Any:
    """The task ask_again: makes the run that asks again if the task ``after`` has left word of one, else is skipped.

    A teardown, so that it does not make a run green in which that task has failed.
    """
    from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
    from airflow.sdk.exceptions import AirflowSkipException

    class AskAgain(TriggerDagRunOperator):
        def execute(self, context: Any) -> None:
            run = context["ti"].xcom_pull(task_ids=after, key=AGAIN)
            if not run:
                raise AirflowSkipException("nothing is to be asked again")
            self.trigger_run_id, self.conf, self.note = run["trigger_run_id"], run["conf"], run["note"]
            super().execute(context)

    return AskAgain(
        task_id="ask_again", trigger_dag_id=dag_id, logical_date=None, skip_when_already_exists=True
    ).as_teardown()


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
    """The task that makes runs of held_hours, each named after its hour in Airflow's grid.

    Where something worse is found than its question has shown, another run asks.
    """
    return trigger_each(task_id, "held_hours", runs, map_index_template="{{ task.conf['hour'] }}")

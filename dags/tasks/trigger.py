"""Runs of another DAG that a task asks for."""

from __future__ import annotations

from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator

from dags.tasks.launch import AGAIN


class AskAgain(TriggerDagRunOperator):
    """Makes the run that asks again, if the task ``after`` has left word of one; as a teardown it hides no failure."""

    def __init__(self, *, after: str, **options: Any) -> None:
        super().__init__(logical_date=None, skip_when_already_exists=True, **options)
        self.after = after

    def execute(self, context: Any) -> None:
        """Make it.

        Raises:
            AirflowSkipException: if nothing is to be asked again.
        """
        from airflow.sdk.exceptions import AirflowSkipException

        run = context["ti"].xcom_pull(task_ids=self.after, key=AGAIN)
        if not run:
            raise AirflowSkipException("nothing is to be asked again")
        self.trigger_run_id, self.conf, self.note = run["trigger_run_id"], run["conf"], run["note"]
        super().execute(context)


def trigger_each(task_id: str, dag_id: str, runs: Any, **options: Any) -> Any:
    """The task that makes each run of ``dag_id`` that is in ``runs``, a task's output: ``trigger_run_id`` and ``conf``.

    A run that is there already is skipped: what it asks has been asked.
    """
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

    Where something worse is found than the question of that run has shown, it is asked again in its place.
    """
    return trigger_each(task_id, "held_hours", runs, map_index_template="{{ task.conf['hour'] }}")

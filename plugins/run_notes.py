"""The note of a DAG run that has ended: what one of its tasks has left as result, see dags/tasks/notes.py.

Airflow's scheduler calls this in its own session, which it commits afterwards.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from airflow.listeners import hookimpl
from airflow.plugins_manager import AirflowPlugin

_KEY = "run_note"
#: A note that starts otherwise is a person's.
_OURS = "Clickmill: "
#: Airflow's own limit.
_MOST_CHARACTERS = 1000


@hookimpl
def on_dag_run_success(dag_run: Any, msg: str) -> None:
    """Of a run that did, or skipped, what it had to."""
    write_note(dag_run)


@hookimpl
def on_dag_run_failed(dag_run: Any, msg: str) -> None:
    """Of a run that failed."""
    write_note(dag_run)


def write_note(dag_run: Any) -> None:
    """Make what the tasks have left the run's note; cleared and run again, it has none if they leave nothing."""
    from airflow.models.xcom import XComModel
    from sqlalchemy.orm import object_session

    session = object_session(dag_run)
    if session is None or not (dag_run.note or _OURS).startswith(_OURS):
        return
    left: list[Any] = list(session.scalars(XComModel.get_many(run_id=dag_run.run_id, dag_ids=dag_run.dag_id, key=_KEY)))
    texts = dict.fromkeys(_text(row.value) for row in left)
    if texts or dag_run.note:
        dag_run.note = f"{_OURS}{'; '.join(texts)}"[:_MOST_CHARACTERS] if texts else ""


def _text(value: Any) -> str:
    text = json.loads(value) if isinstance(value, str) and value.startswith('"') else value
    return str(text)


class RunNotesPlugin(AirflowPlugin):
    """Writes the notes of runs."""

    name = "run_notes"
    listeners = [sys.modules[__name__]]  # noqa: RUF012

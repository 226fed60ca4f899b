"""What became of a DAG run, in one sentence that a person sees without opening a log: its note.

A task has no way to write it: it leaves the sentence as a result, and plugins/run_notes.py makes it the note once the
run has ended.
"""

from __future__ import annotations

#: The key of such a result.
NOTE = "run_note"


def leave_note(text: str) -> None:
    """Leave the sentence, if a task of Airflow's is running."""
    from airflow.sdk import get_current_context

    try:
        context = get_current_context()
    except RuntimeError:  # called by something else
        return
    context["ti"].xcom_push(key=NOTE, value=text)


def skipped(why: str) -> Exception:
    """What to raise to skip a task, with the reason as note."""
    from airflow.sdk.exceptions import AirflowSkipException

    leave_note(why)
    return AirflowSkipException(why)

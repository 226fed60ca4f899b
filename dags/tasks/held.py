"""The question about a held click hour."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dags.tasks.launch import said
from include.holds import ClickHourState, compared, findings_text
from include.log_hours import Hour
from include.settings import Settings

#: The key under which ``ask`` leaves word of what it has shown.
SHOWN = "shown"


def ask_about_held(**options: Any) -> Any:
    """The task ask, which shows what is found now in the run's click hour; skipped if that is not held."""
    from airflow.providers.standard.operators.hitl import HITLOperator

    class AskAboutHeld(HITLOperator):
        def execute(self, context: Any) -> Any:
            self.subject, self.body, shown = _question(Hour.parse(context["params"]["hour"]))
            context["ti"].xcom_push(key=SHOWN, value=shown)
            return super().execute(context)

    return AskAboutHeld(task_id="ask", subject="Click hour {{ params.hour }} is held", **options)


def _question(hour: Hour) -> tuple[str, str, str]:
    """Subject, body and the findings that they show.

    Raises:
        AirflowSkipException: if there is nothing to decide.
    """
    from airflow.sdk.exceptions import AirflowSkipException

    quality = import_module("spark_jobs.quality.held_hours")
    lake = import_module("spark_jobs.lake.lake").Lake(None, Settings.from_environment())
    state = quality.state_of_hour(lake, hour)
    if state is None or not state.is_held:
        became = f": {state.event.described}" if state and state.event else ""
        raise AirflowSkipException(said(f"{hour} is not held{became}"))
    numbers = import_module("spark_jobs.publish.shown_hold").numbers_of_hold(lake, state)
    first = state.not_answered[0]
    number = "" if first.value is None else f" = {first.value:.6g}"
    subject = f"Click hour {hour} is held: {first.reason}{number}"
    return subject, body(state, numbers, _page_of(hour)), findings_text(state.failures)


def body(state: ClickHourState, numbers: list[str], page: str) -> str:
    """What whoever is asked reads: as code, since what was found may have a log's text in it."""
    former = state.former_answer
    new = compared(state.not_answered, former.findings) if former else []
    texts = [
        *([state.asked.note] if state.holding and state.asked.note else []),
        *(failure.said for failure in state.failures),
        *numbers,
        *([f"decided before: {former.described}"] if former else []),
        *(f"new since: {text}" for text in new),
    ]
    code = "\n".join(f"    {' '.join(text.splitlines())}" for text in texts)
    return (
        f"{code}\n\n[The hour, with all checks]({page}). Your answer is for these findings: it stands for counts that "
        "come later, while nothing worse is found. Until then the hour stays as it is published."
    )


def _page_of(hour: Hour) -> str:
    from airflow.providers.common.compat.sdk import conf

    airflow = conf.get("api", "base_url", fallback="/").rstrip("/")
    return f"{airflow}/plugin/data-quality/data-quality/hours/{hour}"

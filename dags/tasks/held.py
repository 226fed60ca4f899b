"""The question about a held click hour."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator

from dags.tasks.launch import said
from include.holds import ClickHourState, compared, findings_text
from include.log_hours import Hour
from include.settings import Settings

#: The key under which ``ask`` leaves word of what it has shown.
SHOWN = "shown"


class AskAboutHeld(HITLOperator):
    """Asks about a click hour with what is found in it now; skipped if it is not held."""

    def execute(self, context: Any) -> Any:
        """Ask.

        Raises:
            AirflowSkipException: if there is nothing to decide.
        """
        from airflow.sdk.exceptions import AirflowSkipException

        hour = Hour.parse(context["params"]["hour"])
        settings = Settings.from_environment()
        quality = import_module("spark_jobs.quality.held_hours")
        lake = import_module("spark_jobs.lake.lake").Lake(None, settings)
        state = quality.state_of_hour(lake, hour)
        if state is None or not state.is_held:
            became = f": {state.event.described}" if state and state.event else ""
            raise AirflowSkipException(said(f"{hour} is not held{became}"))
        numbers = import_module("spark_jobs.publish.shown_hold").numbers_of_hold(lake, state)
        first = state.not_answered[0]
        number = "" if first.value is None else f" = {first.value:.6g}"
        self.subject = f"Click hour {hour} is held: {first.reason}{number}"
        self.body = body(state, numbers, _page_of(hour))
        context["ti"].xcom_push(key=SHOWN, value=findings_text(state.failures))
        return super().execute(context)


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

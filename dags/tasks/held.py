"""The question about a held click hour.

It looks again now and then, and when another run asks about the hour: a question about what is not so any more ends by
itself. Airflow (3.3) keeps a question's text, so what is worse is asked by that other run.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from dags.tasks.defaults import WAITS_FOR_A_PERSON
from dags.tasks.launch import announce, final_errors, log, page_address
from dags.tasks.notes import leave_note
from include.holds import (
    INCIDENT_HOURS,
    ClickHourState,
    approval_run_id,
    compared,
    findings_of,
    findings_text,
    histories_of,
    is_of_known_incident,
    not_shown,
)
from include.hours import Hour, HourRange
from include.journal import click_hours_filter, read_events
from include.settings import Settings

#: What can be answered, and the decision that it is; none for the last.
ANSWERS = {"Publish anyway": "publish", "Drop": "drop"}
KEEP = "Keep held"
#: The key under which ``ask`` leaves word of what it has shown: its result is the answer.
SHOWN = "shown"
#: An open question looks again so often: the older it is, the more seldom.
SOONEST_LOOK, LATEST_LOOK = timedelta(minutes=10), timedelta(hours=6)


def questions(states: Iterable[ClickHourState]) -> list[dict[str, Any]]:
    """For each click hour that is held, the run of held_hours that asks about it; the run's note says why.

    What is being counted or checked again is asked about by the run that does so.
    """
    held = [state for state in states if state.waits_for is None and state.staged_by is None]
    if held:
        leave_note("; ".join(f"{state.hour} is held: {state.reasons}" for state in held))
    return [question(state) for state in held]


def question(state: ClickHourState, note: str = "") -> dict[str, Any]:
    """The run of held_hours that asks about a hold, however often it is counted; another, if something worse is found.

    Airflow keeps the text of a question until it is answered, so the same run cannot show what is worse.
    """
    return {
        "trigger_run_id": approval_run_id(state.hour, state.asked),
        # The reasons for whoever has started the run that asks: the question itself looks at what is found then.
        "conf": {"hour": str(state.hour), "reasons": [failure.described for failure in state.failures]},
        **({"note": note} if note else {}),
    }


def ask_about_held(**options: Any) -> Any:
    """The task ask, which shows what is found now in the run's click hour.

    Skipped if that is not held, or not any more, or if another run asks about something worse.
    """
    from airflow.providers.standard.operators.hitl import HITLOperator

    class AskAboutHeld(HITLOperator):
        def execute(self, context: Any) -> Any:
            with final_errors():
                hour = Hour.parse(context["params"]["hour"])
            self.subject, self.body, shown, is_known = _question(hour)
            context["ti"].xcom_push(key=SHOWN, value=shown)
            if is_known:
                log.info("nobody is notified: somebody was, of an hour that is held for the same cause")
                self.notifiers = []
            return super().execute(context)

        def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
            from airflow.sdk.exceptions import TaskAwaitingInput

            if event.get("error_type") != "timeout":
                return super().execute_complete(context, event)
            shown = context["ti"].xcom_pull(task_ids=self.task_id, key=SHOWN)
            require_open(Hour.parse(context["params"]["hour"]), shown, context["dag_run"].run_id)
            age = datetime.now(UTC) - context["dag_run"].start_date
            raise TaskAwaitingInput(
                method_name="execute_complete", timeout=min(max(age / 4, SOONEST_LOOK), LATEST_LOOK)
            )

    return AskAboutHeld(
        task_id="ask",
        subject="Click hour {{ params.hour }} is held",
        response_timeout=SOONEST_LOOK,
        **WAITS_FOR_A_PERSON,
        **options,
    )


def require_open(hour: Hour, shown: str, run_id: str) -> None:
    """Leave a question open.

    Raises:
        AirflowSkipException: if there is nothing to decide any more, or another run asks: about something worse, or
            because an answer was not carried out.
    """
    from airflow.sdk.exceptions import AirflowSkipException

    state, shown_then = _held_state(_lake(), hour), findings_of(shown)
    asking, worse = approval_run_id(hour, state.asked), not_shown(state.failures, shown_then)
    # A person may have triggered this run, about the same.
    if asking != run_id and (worse or run_id.startswith(f"{hour}_")):
        new = f": {'; '.join(compared(worse, shown_then))}" if worse else ""
        raise AirflowSkipException(announce(f"overtaken, another run asks about {hour}{new}"))


def _held_state(lake: Any, hour: Hour) -> ClickHourState:
    """What is found in a held hour.

    Raises:
        AirflowSkipException: if there is nothing to decide.
    """
    from airflow.sdk.exceptions import AirflowSkipException

    from spark_jobs.hours.held_hours import state_of_hour

    state = state_of_hour(lake, hour)
    if state is None or not state.is_held:
        became = f": {state.event.described}" if state and state.event else ""
        raise AirflowSkipException(announce(f"{hour} is not held{became}"))
    return state


def _lake() -> Any:
    from spark_jobs.lake.lake import Lake

    return Lake(None, Settings.from_environment())


def _question(hour: Hour) -> tuple[str, str, str, bool]:
    """Subject, body, the findings that they show, and whether it is of an incident that is known.

    Raises:
        AirflowSkipException: if there is nothing to decide.
    """
    from spark_jobs.publish.shown_hold import numbers_of_hold

    lake = _lake()
    state = _held_state(lake, hour)
    numbers = numbers_of_hold(lake, state)
    first = state.not_answered[0]
    number = "" if first.value is None else f" = {first.value:.6g}"
    subject = f"Click hour {hour} is held: {first.reason}{number}"
    text = body(state, numbers, page_address(f"hours/{hour}"))
    return subject, text, findings_text(state.failures), _is_known(lake, state)


def _is_known(lake: Any, state: ClickHourState) -> bool:
    """Whether it is asked for the first time, and another hour near it is held for the same cause already."""
    if not state.holding or state.asked != state.holding[0]:
        return False
    near = HourRange(state.hour.plus(-INCIDENT_HOURS - 1), state.hour.plus(INCIDENT_HOURS + 2))
    return is_of_known_incident(state.hour, histories_of(read_events(lake.folder, click_hours_filter(list(near)))))


def body(state: ClickHourState, numbers: list[str], page: str) -> str:
    """What whoever is asked reads: as code, since what was found may have a log's text in it."""
    former = state.former_answer
    new = compared(state.not_answered, former.findings) if former else []
    texts = [
        *([state.asked.note] if state.holding and state.asked.note else []),
        *(failure.described for failure in state.failures),
        *numbers,
        *([f"decided before: {former.described}"] if former else []),
        *(f"new since: {text}" for text in new),
    ]
    code = "\n".join(f"    {' '.join(text.splitlines())}" for text in texts)
    return (
        f"{code}\n\n[The hour, with all checks]({page}). Your answer is for these findings: it stands for counts that "
        "come later, while nothing worse is found. Until then the hour stays as it is published."
    )

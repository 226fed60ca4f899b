"""What Airflow asks, and the answers of a person. A run is its path in Airflow's API."""

from __future__ import annotations

import time
from collections.abc import Mapping

from include.hours import Hour
from ops.airflow_api import HELD_HOURS, AirflowApi
from tests.support.waiting import wait_until

#: A program can answer before Airflow's scheduler has heard that the task waits. Then it takes the task for one that
#: died, tries it again and asks again (3.3), three times at most. A person reads first.
_READING_SECONDS = 2.0


def question(api: AirflowApi, hour: Hour) -> str:
    """The id of the run of held_hours that waits for an answer about the click hour, when it does."""
    run_id: str = wait_until(lambda: api.open_questions().get(str(hour)), "the question is asked")
    text_of_question(api, f"/api/v2/dags/{HELD_HOURS}/dagRuns/{run_id}")
    return run_id


def text_of_question(api: AirflowApi, run: str) -> str:
    """What the run asks, when it waits for an answer."""
    wait_until(lambda: api.call("GET", f"{run}/taskInstances/ask")["state"] == "awaiting_input", "the question is open")
    return str(api.call("GET", f"{run}/taskInstances/ask/-1/hitlDetails")["body"])


def answered(api: AirflowApi, run: str, chosen: str, params: Mapping[str, str] | None = None) -> None:
    """Answer what the run asks, or will ask, as Airflow's page does, and wait for its end."""
    detail = f"{run}/taskInstances/ask/-1/hitlDetails"
    asked_at: float | None = None

    def has_ended() -> bool:
        nonlocal asked_at
        state = api.call("GET", f"{run}/taskInstances/ask")["state"]
        if state != "awaiting_input" or api.call("GET", detail)["response_received"]:
            asked_at = None
        elif asked_at is None:
            asked_at = time.monotonic()
        elif time.monotonic() > asked_at + _READING_SECONDS:
            api.call("PATCH", detail, {"chosen_options": [chosen], "params_input": dict(params or {})})
        return api.call("GET", run)["state"] in ("success", "failed")

    wait_until(has_ended, "the answer is carried out")


def answer(api: AirflowApi, run_id: str, chosen: str, reason: str) -> dict[str, str]:
    """Answer about a held hour; the states of the run's tasks in the end."""
    answered(api, f"/api/v2/dags/{HELD_HOURS}/dagRuns/{run_id}", chosen, {"reason": reason})
    return {task.task_id: task.state for task in api.tasks(HELD_HOURS, run_id)}

"""What Airflow asks about held hours, and the answers of a person."""

from __future__ import annotations

from urllib.parse import unquote

from include.hours import Hour
from ops.airflow_api import HELD_HOURS, AirflowApi
from tests.support.waiting import wait_until


def question(api: AirflowApi, hour: Hour) -> str:
    """The run of held_hours that waits for an answer about the click hour, when it does."""
    page: str = wait_until(lambda: api.open_questions().get(str(hour)), "the question is asked")
    run_id = unquote(page.split("/runs/")[1].split("/")[0])
    path = f"/api/v2/dags/{HELD_HOURS}/dagRuns/{run_id}/taskInstances/ask"
    wait_until(lambda: api.call("GET", path)["state"] == "awaiting_input", "the question is open")
    return run_id


def answer(api: AirflowApi, run_id: str, chosen: str, reason: str) -> dict[str, str]:
    """Answer as Airflow's page does; the states of the run's tasks in the end.

    A program can answer before Airflow's scheduler has heard that the task waits. Then it takes the task for one that
    died, tries it again and asks again (3.3); whoever is asked answers again.
    """
    path = f"/api/v2/dags/{HELD_HOURS}/dagRuns/{run_id}"
    detail = f"{path}/taskInstances/ask/-1/hitlDetails"

    def decided() -> bool:
        state = api.call("GET", f"{path}/taskInstances/ask")["state"]
        if state == "awaiting_input" and not api.call("GET", detail)["response_received"]:
            api.call("PATCH", detail, {"chosen_options": [chosen], "params_input": {"reason": reason}})
        return api.call("GET", path)["state"] in ("success", "failed")

    wait_until(decided, "the decision is done")
    return {task.task_id: task.state for task in api.tasks(HELD_HOURS, run_id)}

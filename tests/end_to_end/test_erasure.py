"""An erasure through a real Airflow: planned, asked about, cancelled, then answered; and what a person got wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from include.hours import Hour
from include.landing import SUCCESS, hour_folder
from ops.airflow_api import AirflowApi, ApiError
from ops.services.running import Services
from tests.support.questions import answered, text_of_question
from tests.support.waiting import wait_until

ADDRESS, OTHER = "203.0.113.77", "203.0.113.78"
LINE = '{} - - [07/Jan/2026:05:0{}:00 +0000] "GET /page HTTP/1.1" 200 5 "-" "Mozilla/5.0 (one)"\n'
VARIABLE = "forms_secret"


@pytest.fixture(scope="module")
def api(services: Services) -> AirflowApi:
    api = AirflowApi(services)
    for dag_id in ("erase_visitor", "undo_backfill"):
        api.wait_for_dag(dag_id)
    return api


@pytest.fixture
def landed(services: Services) -> Iterator[Path]:
    """A landed log that nobody has ingested yet."""
    folder = hour_folder(services.home / "landing", "example_combined", Hour.parse("2026-01-07T05"))
    folder.mkdir(parents=True)
    file = folder / "a.log"
    file.write_text(LINE.format(ADDRESS, 1) + LINE.format(OTHER, 2) + LINE.format(ADDRESS, 3))
    (folder / SUCCESS).touch()
    yield file
    file.unlink()
    (folder / SUCCESS).unlink()
    folder.rmdir()


def trigger(api: AirflowApi, dag_id: str, conf: dict[str, Any]) -> str:
    run = api.call("POST", f"/api/v2/dags/{dag_id}/dagRuns", {"logical_date": None, "conf": conf})
    return f"/api/v2/dags/{dag_id}/dagRuns/{run['dag_run_id']}"


def ended(api: AirflowApi, run: str) -> dict[str, Any]:
    """The run, when it has ended and has its note."""
    return dict(
        wait_until(lambda: (of := api.call("GET", run))["state"] in ("success", "failed") and of, f"{run} ends")
    )


def test_nothing_is_erased_before_a_person_has_seen_how_much_and_said_so(
    api: AirflowApi, services: Services, landed: Path
) -> None:
    before = landed.read_bytes()
    api.call("POST", "/api/v2/variables", {"key": VARIABLE, "value": json.dumps({"address": ADDRESS})})
    form = {"variable": VARIABLE, "reason": "request 2026-117"}

    run = trigger(api, "erase_visitor", form)
    body = text_of_question(api, run)
    assert "landing: 2 lines" in body
    assert "in 1 log hours" in body
    assert "could not be undone any more: the erasure itself" in body
    assert f"Asked for by {services.airflow_user}" in body
    assert ADDRESS not in body
    answered(api, run, "Cancel")
    cancelled = ended(api, run)
    assert (cancelled["state"], cancelled["note"]) == (
        "success", f"Clickmill: nothing is erased: cancelled by {services.airflow_user}",
    )  # fmt: skip
    assert landed.read_bytes() == before

    run = trigger(api, "erase_visitor", form)
    answered(api, run, "Erase")
    done = ended(api, run)
    assert done["state"] == "success", done["note"]
    assert "is complete: landing: 2 lines" in done["note"]
    assert landed.read_text() == LINE.format(OTHER, 2)
    with pytest.raises(ApiError, match="404"):
        api.call("GET", f"/api/v2/variables/{VARIABLE}")


def test_an_error_of_the_person_is_not_tried_again_and_is_the_run_s_note(api: AirflowApi) -> None:
    run = trigger(api, "undo_backfill", {"backfill": "20260105T050000-1a2b", "reason": "a typing error"})
    of_run = ended(api, run)
    assert of_run["state"] == "failed"
    assert of_run["note"].startswith("Clickmill: no backfill '20260105T050000-1a2b'")
    assert api.call("GET", f"{run}/taskInstances/undo_backfill")["try_number"] == 1

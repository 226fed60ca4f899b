"""A staged backfill through a real Airflow: in chunks, asked about, approved by a person, and then published."""

from __future__ import annotations

from collections import Counter

from deltalake import DeltaTable

from include.backfills import read_backfills
from include.hours import Hour
from ops.airflow_api import AirflowApi
from ops.services.running import Services
from samples.sample_logs import SampleSpec, make_sample
from tests.support.waiting import wait_until

DAG_ID = "backfill_clicks"
RUNS = f"/api/v2/dags/{DAG_ID}/dagRuns"
SPEC = SampleSpec(start=Hour.parse("2026-01-21T08"), hours=2, clicks_per_hour=300, seed=8)


def published(services: Services) -> dict[str, Counter[str]]:
    """Published clicks of these click hours, by URL."""
    path = services.home / "lake" / "published_clicks_by_url_hourly"
    rows = DeltaTable(path).to_pyarrow_table().to_pylist() if DeltaTable.is_deltatable(str(path)) else []
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        hour = Hour.of(row["click_date"], row["click_hour"])
        if hour in SPEC.log_hours:
            counts.setdefault(str(hour), Counter())[row["url"]] += row["click_count"]
    return counts


def test_a_staged_backfill_is_published_when_a_person_approves(services: Services) -> None:
    api = AirflowApi(services)
    truth = make_sample(SPEC, services.home / "landing")
    api.wait_for_dag(DAG_ID)
    form = {
        "source": "web",
        "from": SPEC.log_hours.start.start.isoformat(),
        "to": SPEC.log_hours.end.start.isoformat(),
        "chunk": 1,
        "reason": "first load",
    }
    run_id = api.call("POST", RUNS, {"logical_date": None, "conf": form})["dag_run_id"]
    path = f"{RUNS}/{run_id}"

    def is_answered() -> bool:
        # A program can answer before Airflow's scheduler has heard that the task waits: then it asks again (3.3).
        detail = f"{path}/taskInstances/ask/-1/hitlDetails"
        if api.call("GET", f"{path}/taskInstances/ask")["state"] == "awaiting_input":
            question = api.call("GET", detail)
            if not question["response_received"]:
                assert published(services) == {}
                assert "click hours change" in question["body"]
                api.call("PATCH", detail, {"chosen_options": ["Approve"], "params_input": {"why": "as expected"}})
        return api.call("GET", path)["state"] in ("success", "failed")

    wait_until(is_answered, "the backfill is approved and published")
    states = Counter((task.task_id, task.state) for task in api.tasks(DAG_ID, run_id))
    assert states["run_chunk", "success"] == 2
    assert states["decide_backfill", "success"] == 1
    (backfill,) = read_backfills(services.home / "lake").values()
    (approved,) = backfill.decisions
    assert (backfill.state, approved.actor, approved.because) == ("published", services.airflow_user, "as expected")
    assert published(services) == {
        hour: Counter({url: of.clicks for url, of in urls.items()})
        for hour, urls in truth.clicks_by_url.items()
        if Hour.parse(hour) in SPEC.log_hours
    }

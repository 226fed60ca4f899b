"""A staged backfill through a real Airflow: in chunks, asked about, approved by a person, and then published."""

from __future__ import annotations

from collections import Counter

from deltalake import DeltaTable

from include.backfills import read_backfills
from include.hours import Hour
from ops.airflow_api import AirflowApi
from ops.services.running import Services
from samples.sample_logs import SampleSpec, make_sample
from tests.support.questions import answered, text_of_question

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

    text = text_of_question(api, path)
    assert published(services) == {}
    assert "click hours change" in text
    answered(api, path, "Approve", {"why": "as expected"})
    states = Counter((task.task_id, task.state) for task in api.tasks(DAG_ID, run_id))
    assert states["run_chunk", "success"] == 2
    assert states["decide_backfill", "success"] == 1
    backfills = read_backfills(services.home / "lake").values()
    (backfill,) = (backfill for backfill in backfills if backfill.log_hours == SPEC.log_hours)
    (approved,) = backfill.decisions
    assert (backfill.state, approved.actor, approved.because) == ("published", services.airflow_user, "as expected")
    assert published(services) == {
        hour: Counter({url: of.clicks for url, of in urls.items()})
        for hour, urls in truth.clicks_by_url.items()
        if Hour.parse(hour) in SPEC.log_hours
    }

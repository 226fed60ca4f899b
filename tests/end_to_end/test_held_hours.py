"""A held hour through a real Airflow: asked about once, answered by a person, published, and on record."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from deltalake import DeltaTable

from include.hours import Hour
from include.journal import CLICK_HOUR, read_events
from ops.airflow_api import CLICKS_HOURLY, HELD_HOURS, AirflowApi, ApiError
from ops.backfill import Outcome, run_hours
from ops.services.running import Services
from samples.sample_logs import make_sample
from samples.sample_spec import SampleSpec
from samples.truth import Truth
from tests.end_to_end.silent_display import Silent
from tests.support.questions import answer, question
from tests.support.shared_services import METRICS_PORT
from tests.support.waiting import wait_until
from tests.web_receiver import receiver

BROKEN = Hour.parse("2026-01-11T09")
#: Clean: if the broken hour lands again with other clicks, no duplicate of a later hour becomes a click, which would be
#: held too.
SPEC = SampleSpec(start=BROKEN.plus(-1), hours=2, clicks_per_hour=600, seed=5, is_clean=True, broken={BROKEN: 0.7})
HOURS = list(SPEC.log_hours)


@pytest.fixture(scope="module")
def api(services: Services) -> AirflowApi:
    api = AirflowApi(services)
    for dag_id in (CLICKS_HOURLY, HELD_HOURS):
        api.wait_for_dag(dag_id)
    api.unpause(CLICKS_HOURLY)
    return api


@pytest.fixture(scope="module")
def notified(api: AirflowApi) -> Iterator[list[Any]]:
    """What the webhook has received."""
    with receiver() as (address, received):
        body = {"connection_id": "held_webhook", "conn_type": "http", "host": address}
        api.call("POST", "/api/v2/connections", body)
        yield received


@pytest.fixture(scope="module")
def truth(services: Services) -> Truth:
    return make_sample(SPEC, services.home / "landing")


@pytest.fixture(scope="module")
def held(api: AirflowApi, truth: Truth, notified: list[Any]) -> Outcome:
    """The hours, run two at a time, one of them held."""
    return run(api, HOURS)


def run(api: AirflowApi, hours: list[Hour]) -> Outcome:
    return run_hours(api, CLICKS_HOURLY, hours, "web", again=True, at_once=2, display=Silent())


def rows(services: Services, table: str) -> list[dict[str, Any]]:
    table_rows: list[dict[str, Any]] = DeltaTable(str(services.home / "lake" / table)).to_pyarrow_table().to_pylist()
    return table_rows


def published(services: Services) -> dict[str, Counter[str]]:
    """Published clicks of these click hours, by URL."""
    counts: dict[str, Counter[str]] = {}
    for row in rows(services, "published_clicks_by_url_hourly"):
        hour = Hour.of(row["click_date"], row["click_hour"])
        if hour in SPEC.log_hours:
            counts.setdefault(str(hour), Counter())[row["url"]] += row["click_count"]
    return counts


def true_counts(truth: Truth) -> dict[str, Counter[str]]:
    return {
        hour: Counter({url: of.clicks for url, of in urls.items()})
        for hour, urls in truth.clicks_by_url.items()
        if Hour.parse(hour) in SPEC.log_hours
    }


def events(services: Services) -> list[tuple[str, str | None]]:
    """What became of the held hour, and who said so, oldest first."""
    of_hour = read_events(services.home / "lake", [("kind", "=", CLICK_HOUR), ("subject", "=", str(BROKEN))])
    return [(row["event"], row["actor"]) for row in of_hour]


def questions_notified(notified: list[Any]) -> int:
    """Of how many questions somebody was notified; of one that is asked again (see answer), once more."""
    return len({message["page"] for _, message in notified})


def test_one_hour_is_held_and_the_others_are_published(
    api: AirflowApi, services: Services, truth: Truth, held: Outcome
) -> None:
    assert not held.failures
    assert held.held == [f"web {BROKEN}"]
    assert published(services) == {hour: of for hour, of in true_counts(truth).items() if hour != str(BROKEN)}
    assert events(services) == [("held", None)]
    (of_broken,) = api.runs(CLICKS_HOURLY, [BROKEN])
    # The fault is in the data: no task is red, and the run's note says what is held.
    assert {task.state for task in api.tasks(CLICKS_HOURLY, of_broken.run_id)} == {"success"}
    note = api.call("GET", f"/api/v2/dags/{CLICKS_HOURLY}/dagRuns/{of_broken.run_id}")["note"]
    assert note == f"Clickmill: {BROKEN} is held: web {BROKEN}: quarantined_share_critical"


def test_prometheus_is_told(services: Services, held: Outcome) -> None:
    port = (services.home / METRICS_PORT).read_text()
    told = httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=60).raise_for_status().text
    (hours,) = re.findall(r"^clickmill_held_hours (\S+)$", told, re.MULTILINE)
    assert float(hours) >= 1
    assert "clickmill_lock_held{host=" in told
    assert 'lock="spark-server"' in told
    assert "clickmill_service_unwell{" not in told
    # Spark tells of its executors itself.
    told = httpx.get(f"{services.spark_ui_url}/metrics/executors/prometheus/", timeout=60).raise_for_status().text
    assert "metrics_executor_completedTasks_total" in told


def test_the_question_says_why_and_one_message_is_sent(
    api: AirflowApi, services: Services, held: Outcome, notified: list[Any]
) -> None:
    run_id = question(api, BROKEN)
    detail = api.call("GET", f"/api/v2/dags/{HELD_HOURS}/dagRuns/{run_id}/taskInstances/ask/-1/hitlDetails")
    assert detail["subject"].startswith(f"Click hour {BROKEN} is held: web {BROKEN}: quarantined_share_critical = 0.")
    assert f"web {BROKEN}: expected" in detail["body"]
    assert "readers see: nothing of this hour yet" in detail["body"]
    assert f"({services.airflow_url}/plugin/data-quality/data-quality/hours/{BROKEN})" in detail["body"]
    ((_, message),) = notified
    assert message["hour"] == str(BROKEN)
    assert f"web {BROKEN}: expected" in message["text"]
    assert message["page"].startswith(
        f"{services.airflow_url}/dags/held_hours/runs/{run_id}/tasks/ask/required_actions"
    )


def test_something_worse_is_asked_by_another_run(
    api: AirflowApi, services: Services, held: Outcome, notified: list[Any]
) -> None:
    run_id = question(api, BROKEN)
    make_sample(replace(SPEC, broken={BROKEN: 0.9}), services.home / "landing")
    assert run(api, [BROKEN]).held == [f"web {BROKEN}"]
    worse = question(api, BROKEN)
    assert worse != run_id
    detail = f"/api/v2/dags/{HELD_HOURS}/dagRuns/{worse}/taskInstances/ask/-1/hitlDetails"

    def share() -> float:
        (number,) = re.findall(r"quarantined_share = ([0-9.]+)", api.call("GET", detail)["body"])
        return float(number)

    assert share() > 0.8
    assert questions_notified(notified) == 2
    assert ended(api, run_id).startswith(f"overtaken, another run asks about {BROKEN}: web {BROKEN}: quarantined_share")
    assert api.open_questions()[str(BROKEN)] == worse


def ended(api: AirflowApi, run_id: str) -> str:
    """What a question says that ended by itself: nobody can answer it any more."""
    path = f"/api/v2/dags/{HELD_HOURS}/dagRuns/{run_id}"
    wait_until(lambda: api.call("GET", path)["state"] == "success", "the question has ended")
    assert {task.task_id: task.state for task in api.tasks(HELD_HOURS, run_id)}["decide_held"] == "skipped"
    ask = api.call("GET", f"{path}/taskInstances/ask")
    assert ask["state"] == "skipped"
    return str(ask["rendered_map_index"])


def test_the_first_answer_has_effect_though_the_hour_was_counted_since(
    api: AirflowApi, services: Services, held: Outcome, notified: list[Any]
) -> None:
    """Counted again since the question was asked, and the same was found: that asks and tells nothing new."""
    run_id, told = question(api, BROKEN), len(notified)
    again = run(api, [BROKEN])
    assert (again.failures, again.held) == ([], [f"web {BROKEN}"])
    assert (question(api, BROKEN), len(notified)) == (run_id, told)
    assert events(services) == [("held", None)] * 2
    with pytest.raises(ApiError, match="400"):
        answer(api, run_id, "Publish and be damned", "no such option")
    states = answer(api, run_id, "Publish anyway", "the shop says that is all")
    assert states == {"ask": "success", "decide_held": "success", "ask_again": "skipped"}
    truth = make_sample(replace(SPEC, broken={BROKEN: 0.9}), services.home / "landing")
    assert published(services) == true_counts(truth)
    assert events(services) == [("held", None), ("held", None), ("published_anyway", services.airflow_user)]
    assert str(BROKEN) not in api.open_questions()
    path = f"/api/v2/dags/{HELD_HOURS}/dagRuns/{run_id}/taskInstances/decide_held"
    label = api.call("GET", path)["rendered_map_index"]
    assert label == f"{BROKEN}: published anyway by {services.airflow_user}"


def test_fixed_and_run_again_it_is_published_and_there_is_nothing_left_to_decide(
    api: AirflowApi, services: Services, held: Outcome, notified: list[Any]
) -> None:
    make_sample(replace(SPEC, broken={BROKEN: 0.98}), services.home / "landing")
    assert run(api, [BROKEN]).held == [f"web {BROKEN}"]
    open_still = question(api, BROKEN)
    fixed = make_sample(replace(SPEC, broken={}), services.home / "landing")
    assert run(api, [BROKEN]).held == []
    assert published(services) == true_counts(fixed)
    assert events(services)[3:] == [("held", None), ("published", None)]
    assert questions_notified(notified) == 3
    # A question that is asked for no reason says so in its name.
    conf = {"logical_date": None, "conf": {"hour": str(BROKEN)}}
    by_hand = api.call("POST", f"/api/v2/dags/{HELD_HOURS}/dagRuns", conf)["dag_run_id"]
    path = f"/api/v2/dags/{HELD_HOURS}/dagRuns/{by_hand}"
    wait_until(lambda: api.call("GET", path)["state"] in ("success", "failed"), "the run has ended")
    # So does one that was open: it looks again, at once when another run asks.
    for run_id in (by_hand, open_still):
        assert ended(api, run_id).startswith(f"{BROKEN} is not held: published at")
    assert published(services) == true_counts(fixed)
    assert len(events(services)) == 5

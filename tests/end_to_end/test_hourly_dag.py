"""The whole way through a real Airflow and a real Spark server, read back by a reader that is not Spark."""

from __future__ import annotations

import os
import re
import signal
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import psutil
import pytest
from deltalake import DeltaTable

from include.hours import Hour, HourRange
from ops.airflow_api import AirflowApi
from ops.backfill import Outcome, run_hours, run_ranges
from ops.services.running import Services
from samples.sample_logs import make_sample
from samples.sample_spec import SampleSpec
from samples.truth import Truth
from tests.end_to_end.silent_display import Silent
from tests.support.shared_services import SOURCES
from tests.support.waiting import wait_until

DAG_ID = "clicks_hourly"
HOURS = list(HourRange(Hour.parse("2026-03-01T08"), Hour.parse("2026-03-01T11")))


@pytest.fixture(scope="module")
def api(services: Services) -> AirflowApi:
    api = AirflowApi(services)
    api.wait_for_dag(DAG_ID)
    api.unpause(DAG_ID)
    return api


@pytest.fixture(scope="module")
def truth(services: Services) -> Truth:
    spec = SampleSpec(start=HOURS[0], source="web", hours=len(HOURS), clicks_per_hour=600, seed=11)
    return make_sample(spec, services.home / "landing")


@pytest.fixture(scope="module")
def backfilled(api: AirflowApi, truth: Truth) -> Outcome:
    """The sample's hours after two backfills that ran beside each other over the same hours."""
    return run_hours(api, DAG_ID, HOURS, "web", again=False, at_once=3, display=Silent())


def table(services: Services, name: str) -> list[dict[str, Any]]:
    """The rows of these tests' day: other modules' hours in the same home are of other days."""
    rows: list[dict[str, Any]] = DeltaTable(str(services.home / "lake" / name)).to_pyarrow_table().to_pylist()
    return [row for row in rows if HOURS[0].day in (row.get("click_date"), row.get("log_date"))]


def published(services: Services, key: str) -> Counter[tuple[str, str]]:
    rows = table(services, f"published_clicks_by_{key.removesuffix('_code')}_hourly")
    return Counter({(str(Hour.of(r["click_date"], r["click_hour"])), r[key]): r["click_count"] for r in rows})


def true_counts(counts: Any) -> Counter[tuple[str, str]]:
    return Counter({(hour, key): of.clicks for hour, keys in counts.items() for key, of in keys.items()})


def run_state(api: AirflowApi, run_id: str) -> str:
    return str(api.call("GET", f"/api/v2/dags/{DAG_ID}/dagRuns/{run_id}")["state"])


def trigger(api: AirflowApi, run_id: str, **conf: str) -> None:
    body = {"dag_run_id": run_id, "logical_date": None, "conf": {"source": "web", **conf}}
    api.call("POST", f"/api/v2/dags/{DAG_ID}/dagRuns", body)


def test_airflow_imports_every_dag(api: AirflowApi) -> None:
    assert api.call("GET", "/api/v2/importErrors")["total_entries"] == 0


@pytest.mark.path
def test_a_backfill_publishes_the_true_counts(services: Services, truth: Truth, backfilled: Outcome) -> None:
    assert not backfilled.failures
    assert backfilled.succeeded == len(HOURS)
    assert published(services, "url") == true_counts(truth.clicks_by_url)
    assert published(services, "country_code") == true_counts(truth.clicks_by_country)


def test_the_accounting_is_the_true_one(services: Services, truth: Truth, backfilled: Outcome) -> None:
    rows = {str(Hour.of(row["log_date"], row["log_hour"])): row for row in table(services, "ingest_accounting")}
    # Besides, Airflow has run the hour that is just over, in which nothing landed.
    assert set(truth.log_hours) <= set(rows)
    for hour, of_hour in truth.log_hours.items():
        row = rows[hour]
        counts = (row["lines"], row["accepted"], row["duplicates"], dict(row["quarantined_by_reason"]))
        assert counts == (of_hour.lines, of_hour.accepted, of_hour.duplicates, of_hour.quarantined)
        assert (row["late"], row["out_of_order"], row["files"]) == (of_hour.late, of_hour.out_of_order, of_hour.files)
        assert row["is_closed"]


def test_every_task_says_what_it_did_and_links_the_report(api: AirflowApi, backfilled: Outcome) -> None:
    run = next(run for run in api.runs(DAG_ID, HOURS[:1]) if run.state == "success")
    for task in api.tasks(DAG_ID, run.run_id):
        if task.task_id == "ask_about_held":
            assert task.state == "skipped"
            continue
        log = str(api.log(DAG_ID, task))
        if task.task_id == "wait_for_landing":
            assert "waiting for _SUCCESS, or the stream, of: nothing" in log
        else:
            assert "report.html" in log, task.task_id
            assert "2026-03-01T08" in log, task.task_id


def test_the_report_and_exports_are_there(services: Services, truth: Truth, backfilled: Outcome) -> None:
    page = (services.home / "reports" / "report.html").read_text(encoding="utf-8")
    for hour, of in truth.log_hours.items():
        # Its row of the accounting: other modules' hours in the same home are in the totals.
        assert re.search(rf"<tr[^>]*>[^\n]*{hour}[^\n]*>{of.lines:,}</td>[^\n]*>{of.accepted:,}</td>", page), hour
    exports = services.home / "reports" / "exports"
    assert len(list(exports.glob(f"*/click_date={HOURS[0].day}/click_hour=*/*.csv"))) == 2 * len(truth.clicks_by_url)


def test_a_run_by_hand_over_a_range_killed_in_the_middle_changes_nothing(
    api: AirflowApi, services: Services, truth: Truth, backfilled: Outcome
) -> None:
    """The task's process is killed outright; Airflow tries it again, and the tables are the same."""
    before = published(services, "url")
    run_id = "by-hand-and-killed"
    trigger(api, run_id, **{"from": "2026-03-01T08:00:00Z", "to": "2026-03-01T11:00:00Z"})

    def running() -> list[psutil.Process]:
        (task,) = [t for t in api.tasks(DAG_ID, run_id) if t.task_id == "ingest_clicks"] or [None]
        if task is None or task.state != "running":
            return []
        return task_processes(services)

    # Those that were found: looked for again, they may have ended.
    for process in wait_until(running, "ingest_clicks runs"):
        os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: run_state(api, run_id) in ("success", "failed"), "the run by hand ends")
    assert run_state(api, run_id) == "success"
    (ingest,) = [task for task in api.tasks(DAG_ID, run_id) if task.task_id == "ingest_clicks"]
    assert ingest.try_number >= 2
    assert published(services, "url") == before
    assert len(table(services, "clicks")) == sum(of.accepted for of in truth.log_hours.values())


def task_processes(services: Services) -> list[psutil.Process]:
    """The processes of this home that run a task just now, by their open Spark session."""
    processes = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        try:
            is_ours = process.environ().get("CLICKMILL_HOME") == str(services.home)
            connected = any(
                connection.raddr and connection.raddr.port == services.spark_port
                for connection in process.net_connections("tcp")
            )
            if is_ours and connected and "airflow" in " ".join(process.cmdline()):
                processes.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return processes


def test_two_backfills_beside_each_other_do_no_harm(
    api: AirflowApi, services: Services, truth: Truth, backfilled: Outcome
) -> None:
    """Runs over the same and neighbouring hours at once: by hand one range, by Airflow one hour again."""
    trigger(api, "beside-a", **{"from": "2026-03-01T08:00:00Z", "to": "2026-03-01T10:00:00Z"})
    trigger(api, "beside-b", **{"from": "2026-03-01T09:00:00Z", "to": "2026-03-01T11:00:00Z"})
    outcome = run_hours(api, DAG_ID, HOURS[1:2], "web", again=True, at_once=1, display=Silent())
    assert not outcome.failures
    for run_id in ("beside-a", "beside-b"):
        wait_until(lambda run_id=run_id: run_state(api, run_id) in ("success", "failed"), f"{run_id} ends")
        assert run_state(api, run_id) == "success"
    assert published(services, "url") == true_counts(truth.clicks_by_url)
    assert published(services, "country_code") == true_counts(truth.clicks_by_country)


def test_an_untouched_form_runs_what_waits_and_then_nothing(
    api: AirflowApi, services: Services, truth: Truth, backfilled: Outcome
) -> None:
    """An hour is landed again: it is what waits. Once it is published there is nothing to do, which is no failure."""
    (services.home / "landing" / "web" / "log_date=2026-03-01" / "log_hour=10" / "_SUCCESS").touch()

    for run_id, state in (("untouched", "success"), ("untouched-again", "skipped")):
        trigger(api, run_id)
        wait_until(lambda run_id=run_id: run_state(api, run_id) in ("success", "failed"), f"{run_id} ends")
        assert run_state(api, run_id) == "success"
        states = {task.task_id: task.state for task in api.tasks(DAG_ID, run_id)}
        assert states["publish_clicks"] == state
    assert api.result(DAG_ID, "untouched", "wait_for_landing") == {"from": "2026-03-01T10", "to": "2026-03-01T11"}
    assert published(services, "url") == true_counts(truth.clicks_by_url)


def test_a_form_off_the_hour_ends_at_once_with_one_sentence(api: AirflowApi) -> None:
    trigger(api, "off-the-hour", **{"from": "2026-03-01T08:30:00Z", "to": "2026-03-01T11:00:00Z"})
    path = f"/api/v2/dags/{DAG_ID}/dagRuns/off-the-hour"
    run = wait_until(lambda: (run := api.call("GET", path))["note"] and run, "the run has a note")
    expected = "2026-03-01T08 or 2026-03-01T09"
    assert run["note"] == f"Clickmill: not on the full hour: '2026-03-01T08:30:00Z'; expected {expected}"
    assert run["state"] == "failed"
    states = {task.task_id: task.state for task in api.tasks(DAG_ID, "off-the-hour")}
    assert (states["wait_for_landing"], states["ingest_clicks"]) == ("failed", "upstream_failed")


def test_a_source_that_is_declared_while_airflow_runs_is_run_at_once(api: AirflowApi, services: Services) -> None:
    hour, name = Hour.parse("2026-03-20T08"), "declared_late"
    declared = f'[sources.{name}]\nformat = "combined"\nbase_url = "https://late.example.com"\n'
    with (services.home / SOURCES).open("a", encoding="utf-8") as file:
        file.write(f"\n{declared}")
    landed = services.home / "landing" / name / "log_date=2026-03-20" / "log_hour=08"
    landed.mkdir(parents=True)
    line = '8.8.8.8 - - [20/Mar/2026:08:30:00 +0000] "GET /late HTTP/1.1" 200 5 "-" "Mozilla/5.0"'
    (landed / "a.log").write_text(f"{line}\n", encoding="utf-8")
    (landed / "_SUCCESS").touch()

    api.wait_for_source(DAG_ID, name)
    outcome = run_ranges(api, DAG_ID, [hour], name, again=False, display=Silent())
    assert (outcome.succeeded, outcome.failures) == (1, [])
    rows = DeltaTable(str(services.home / "lake" / "published_clicks_by_url_hourly")).to_pyarrow_table().to_pylist()
    assert [row["click_count"] for row in rows if row["url"] == "https://late.example.com/late"] == [1]


def test_airflows_own_backfill_takes_instants_whatever_their_offset(api: AirflowApi) -> None:
    """Berlin's clocks go forward between the two: https://github.com/apache/airflow/issues/67537."""
    asked = {"dag_id": DAG_ID, "from_date": "2026-03-29T01:00:00+01:00", "to_date": "2026-03-29T03:00:00+02:00"}
    runs = api.call("POST", "/api/v2/backfills/dry_run", asked)["backfills"]
    assert [run["partition_key"] for run in runs] == ["2026-03-29T00", "2026-03-29T01"]


def test_only_loopback_is_listened_on(services: Services, backfilled: Outcome) -> None:
    ports = {services.airflow_port, services.spark_port, services.spark_ui_port}
    listening = [
        connection.laddr for connection in psutil.net_connections("tcp") if connection.status == psutil.CONN_LISTEN
    ]
    hosts = {address.ip.removeprefix("::ffff:") for address in listening if address.port in ports}
    assert hosts == {"127.0.0.1"}


def test_airflow_asks_for_a_login(services: Services) -> None:
    with pytest.raises(HTTPError) as refused:
        urllib.request.urlopen(f"{services.airflow_url}/api/v2/dags", timeout=30)
    assert refused.value.code in (401, 403)


def test_no_secret_is_on_a_command_line_or_in_a_log(services: Services, backfilled: Outcome) -> None:
    secrets = [services.spark_token, services.airflow_password]
    for process in psutil.process_iter(["cmdline"]):
        command = " ".join(process.info["cmdline"] or ())
        assert not any(secret in command for secret in secrets), command[:80]
    for file in (services.home / "logs").rglob("*"):
        if file.is_file():
            text = Path(file).read_text(encoding="utf-8", errors="replace")
            assert not any(secret in text for secret in secrets), file

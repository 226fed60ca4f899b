"""Every DAG keeps the house's rules; a failure says how to keep them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tomllib
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pendulum
import pytest
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import DAG, RetryAction, TriggerRule
from airflow.sdk.exceptions import AirflowFailException, AirflowTaskTimeout, ParamValidationError
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.base import DagRunInfo
from pyspark.errors.exceptions.connect import SparkConnectException

from dags.tasks.defaults import LONGEST_JOB, LONGEST_LOOK, Retries
from dags.tasks.held import SOONEST_LOOK
from dags.tasks.launch import final_errors
from dags.tasks.lineage import TaskLineage
from include import lake_pool
from include.errors import ClickmillError, UsageError
from include.job_arguments import arguments_of_run
from include.settings import REPOSITORY
from ops.services.environment import AIRFLOW_DEFAULTS

DAG_FILES = sorted((REPOSITORY / "dags").glob("*.py"))
SOURCES = tomllib.loads((REPOSITORY / "config" / "sources.toml").read_text(encoding="utf-8"))["sources"]
SLOW = ("pyspark", "great_expectations", "delta", "pandas", "pygal", "matplotlib")


def load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"dag_{file.stem}", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def dags_of(file: Path) -> list[DAG]:
    return [value for value in vars(load(file)).values() if isinstance(value, DAG)]


def task_function(dag_id: str, task_id: str) -> Callable[..., Any]:
    """What a task of Spark's calls, with the session as ``spark``."""
    (dag,) = dags_of(REPOSITORY / "dags" / f"{dag_id}.py")
    function: Callable[..., Any] = dag.get_task(task_id).python_callable
    return function


@pytest.fixture(scope="module")
def clicks_hourly() -> DAG:
    (dag,) = dags_of(REPOSITORY / "dags" / "clicks_hourly.py")
    return dag


@pytest.fixture(scope="module")
def held_hours() -> DAG:
    (dag,) = dags_of(REPOSITORY / "dags" / "held_hours.py")
    return dag


@pytest.mark.parametrize("file", DAG_FILES, ids=lambda file: file.stem)
def test_a_dag_says_who_owns_it_what_it_does_and_how_often_it_tries(file: Path) -> None:
    dags = dags_of(file)
    assert dags, f"{file.name} declares no DAG at its top: bind it (with DAG(...) as dag)"
    for dag in dags:
        assert dag.dag_id == file.stem, "name the DAG as its file"
        assert "Backfill" in (dag.doc_md or ""), "set doc_md=__doc__, and say there how to backfill"
        assert dag.tags, "give the DAG a tag"
        assert not dag.catchup, "leave catchup to a person: set catchup=False"
        assert getattr(dag.start_date, "tzinfo", None), "start_date must be a fixed moment with its time zone"
        for task in dag.tasks:
            assert task.owner != "airflow", f"{task.task_id}: set an owner in default_args"
            assert task.retries >= 1, f"{task.task_id}: set retries in default_args"
            assert task.retry_exponential_backoff, f"{task.task_id}: let retries back off"


@pytest.mark.parametrize("file", DAG_FILES, ids=lambda file: file.stem)
def test_what_takes_the_lakes_lock_waits_in_its_pool_and_the_hour_goes_before_a_backfill(file: Path) -> None:
    weights = {"clicks_hourly": 10}
    for dag in dags_of(file):
        for task in dag.tasks:
            is_of_spark = task.task_type in TaskLineage.get_operator_classnames() and dag.dag_id != "clicks_stream"
            if not is_of_spark and task.task_id != "maintain_lake":
                assert task.pool == "default_pool", f"{task.task_id} takes no lock of the lake"
                continue
            is_chunk = task.task_id == "run_chunk"
            assert task.pool == lake_pool.NAME, f"{task.task_id}: give it **ON_LAKE"
            assert task.priority_weight == (1 if is_chunk else weights.get(dag.dag_id, 5))
            assert task.max_active_tis_per_dag == (1 if is_chunk else None), "two would leave no slot"
            assert task.weight_rule == "absolute"


@pytest.mark.parametrize(
    ("error", "action", "seconds"),
    [
        (SparkConnectException(errorClass="NO_ACTIVE_SESSION", messageParameters={}), RetryAction.RETRY, 1),
        (ClickmillError("the lake cannot be reached"), RetryAction.DEFAULT, None),
        (AirflowTaskTimeout("Timeout, PID: 7"), RetryAction.DEFAULT, None),
    ],
)
def test_a_task_that_lost_its_spark_server_is_tried_again_immediately(
    error: BaseException, action: RetryAction, seconds: int | None
) -> None:
    decision = Retries().evaluate(error, 1, 3)
    delay = None if seconds is None else timedelta(seconds=seconds)
    assert (decision.action, decision.retry_delay) == (action, delay)
    for dag in (dag for file in DAG_FILES for dag in dags_of(file)):
        assert all(isinstance(task.retry_policy, Retries) for task in dag.tasks)


@pytest.mark.parametrize("file", DAG_FILES, ids=lambda file: file.stem)
def test_a_task_that_hangs_is_ended_and_a_question_waits_as_long_as_it_takes(file: Path) -> None:
    for dag in dags_of(file):
        for task in dag.tasks:
            if isinstance(task, HITLOperator):
                assert task.execution_timeout is None, f"{task.task_id}: give it **WAITS_FOR_A_PERSON"
                continue
            is_job = hasattr(task, "conn_id") or task.task_id in ("maintain_lake", "stream_clicks", "run_chunk")
            assert task.execution_timeout == (LONGEST_JOB if is_job else LONGEST_LOOK), task.task_id


def test_a_task_that_ran_out_of_time_keeps_its_error() -> None:
    """Nothing in between takes it for an error of the job."""
    with pytest.raises(AirflowTaskTimeout), final_errors():
        raise AirflowTaskTimeout("Timeout, PID: 7")


@pytest.mark.slow
def test_parsing_the_dags_imports_nothing_slow() -> None:
    files = [str(file) for file in DAG_FILES]
    code = f"import runpy, sys; [runpy.run_path(file) for file in {files}]; print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    imported = {name.split(".")[0] for name in ran.stdout.split()}
    assert not imported & set(SLOW), f"import {imported & set(SLOW)} inside the task, not at parse time"


def test_the_hourly_tasks_run_in_order_and_reach_spark_through_one_connection(clicks_hourly: DAG) -> None:
    order = ["wait_for_landing", "ingest_clicks", "aggregate_clicks", "validate_clicks", "publish_clicks"]
    assert [task.task_id for task in clicks_hourly.topological_sort()] == [*order, "ask_about_held"]
    assert {clicks_hourly.get_task(name).conn_id for name in order[1:]} == {"spark_default"}
    assert clicks_hourly.get_task("wait_for_landing").mode == "reschedule"


def test_nothing_is_published_without_a_judgement(clicks_hourly: DAG) -> None:
    publish = clicks_hourly.get_task("publish_clicks")
    assert publish.upstream_task_ids == {"validate_clicks"}
    assert publish.trigger_rule == TriggerRule.ALL_SUCCESS


def test_each_hold_is_asked_about_once_by_a_run_of_its_own(clicks_hourly: DAG, held_hours: DAG) -> None:
    ask = clicks_hourly.get_task("ask_about_held").partial_kwargs
    assert (ask["trigger_dag_id"], ask["skip_when_already_exists"]) == (held_hours.dag_id, True)
    # Two of them within one moment would be one run otherwise.
    assert ask["logical_date"] is None


def test_a_question_waits_without_a_worker_and_is_open_as_soon_as_it_is_asked(held_hours: DAG) -> None:
    assert [task.task_id for task in held_hours.topological_sort()] == ["ask", "decide_held", "ask_again"]
    ask = held_hours.get_task("ask")
    assert isinstance(ask, HITLOperator)
    assert ask.options == ["Publish anyway", "Drop", "Keep held"]
    assert (ask.defaults, ask.execution_timeout) == (None, None), "nobody answers by itself"
    assert ask.response_timeout == SOONEST_LOOK
    assert held_hours.is_paused_upon_creation is False


def test_a_refused_answer_is_asked_again_once_and_leaves_its_run_red(held_hours: DAG) -> None:
    again = held_hours.get_task("ask_again")
    assert (again.trigger_dag_id, again.skip_when_already_exists) == (held_hours.dag_id, True)
    assert again.logical_date is None
    # Of a teardown Airflow does not ask whether a run has succeeded.
    assert again.is_teardown
    assert not again.on_failure_fail_dagrun


def test_waiting_questions_leave_room_for_the_runs_of_clicks_hourly(held_hours: DAG, clicks_hourly: DAG) -> None:
    """The scheduler looks at so many runs a time, and at a backfill's only after all others."""
    examined = int(AIRFLOW_DEFAULTS["AIRFLOW__SCHEDULER__MAX_DAGRUNS_PER_LOOP_TO_SCHEDULE"])
    assert held_hours.max_active_runs + 10 * clicks_hourly.max_active_runs <= examined


@pytest.mark.parametrize(("hour", "refused"), [("x", "not an hour: 'x'"), ("2026-03-01T05:30", "not on the full hour")])
def test_a_question_is_about_an_hour(held_hours: DAG, hour: str, refused: str) -> None:
    ask = held_hours.get_task("ask")
    assert isinstance(ask, HITLOperator)
    with pytest.raises(AirflowFailException, match=refused):
        ask.execute({"params": {"hour": hour}})


def test_the_first_scheduled_run_is_that_of_the_hour_of_the_first_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLICKMILL_SCHEDULE_START", "2126-03-01T05:20:00+00:00")
    (parsed,) = dags_of(REPOSITORY / "dags" / "clicks_hourly.py")
    dag = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(parsed))
    march = pendulum.datetime(2026, 3, 1)
    backfilled = DagRunInfo(run_after=march, partition_date=march, partition_key="2026-03-01T00", data_interval=None)

    for last in (None, backfilled):
        following = dag.next_dagrun_info(last_automated_run_info=last)
        assert following is not None, "Airflow's log says why"
        assert following.partition_key == "2126-03-01T05"
        assert following.run_after == pendulum.datetime(2126, 3, 1, 6)


@pytest.mark.parametrize(
    ("first", "last", "hours"),
    [
        # Berlin's clocks go forward between these.
        ("2026-03-29T01:00+01:00", "2026-03-29T03:00+02:00", ["2026-03-29T00", "2026-03-29T01"]),
        ("2026-03-29T02:00+01:00", "2026-03-29T02:00+01:00", ["2026-03-29T01"]),
        ("2026-03-01T05:30+05:30", "2026-03-01T06:30+05:30", ["2026-03-01T00", "2026-03-01T01"]),
        ("2026-02-28T20:00-05:00", "2026-02-28T20:59-05:00", ["2026-03-01T01"]),
        ("2026-03-01T00:00+00:00", "2026-03-01T01:00+00:00", ["2026-03-01T00", "2026-03-01T01"]),
        ("2026-03-01T00:00", "2026-03-01T01:00", ["2026-03-01T00", "2026-03-01T01"]),
    ],
)
def test_a_backfill_takes_the_hours_of_its_range_whatever_the_offset(
    clicks_hourly: DAG, first: str, last: str, hours: list[str]
) -> None:
    timetable = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(clicks_hourly)).timetable
    runs = timetable.iter_partition_dagrun_infos(
        earliest=datetime.fromisoformat(first), latest=datetime.fromisoformat(last)
    )
    assert [run.partition_key for run in runs] == hours


def test_the_form_offers_the_declared_sources(clicks_hourly: DAG) -> None:
    assert clicks_hourly.params.get_param("source").schema["enum"] == ["all", *SOURCES]
    for name in ("from", "to"):
        assert clicks_hourly.params.get_param(name).schema["format"] == "date-time"
        assert clicks_hourly.params.get_param(name).description


def test_the_stream_catches_up_every_few_minutes_one_run_at_a_time() -> None:
    (dag,) = dags_of(REPOSITORY / "dags" / "clicks_stream.py")
    streamed = [name for name, source in SOURCES.items() if {"kafka", "files"} & source.keys()]
    assert dag.params.get_param("source").schema["enum"] == ["all", *streamed]
    assert dag.max_active_runs == 1
    assert [task.task_id for task in dag.topological_sort()] == ["choose_sources", "stream_clicks"]
    assert dag.get_task("stream_clicks").partial_kwargs["conn_id"] == "spark_default"


def test_a_run_works_on_its_partition() -> None:
    arguments = arguments_of_run({"source": "web", "from": None, "to": None}, "2026-03-01T05")
    assert (arguments.source, list(map(str, arguments.log_hours))) == ("web", ["2026-03-01T05"])


def test_the_form_wins_over_the_partition() -> None:
    params = {"source": "web", "from": "2026-03-01T05:00:00Z", "to": "2026-03-01T09:00:00+02:00"}
    assert list(map(str, arguments_of_run(params, "2020-01-01T00").log_hours)) == ["2026-03-01T05", "2026-03-01T06"]


@pytest.mark.parametrize(
    ("start", "end", "key"),
    [(None, None, None), ("2026-03-01T05:00:00Z", None, None), ("2026-03-01T05:30:00Z", "2026-03-01T07:00:00Z", None)],
)
def test_a_run_without_whole_hours_is_refused(start: str | None, end: str | None, key: str | None) -> None:
    with pytest.raises(UsageError):
        arguments_of_run({"source": "web", "from": start, "to": end}, key)


@pytest.fixture(scope="module")
def backfill_clicks() -> DAG:
    (dag,) = dags_of(REPOSITORY / "dags" / "backfill_clicks.py")
    return dag


def test_a_backfill_plans_runs_its_chunks_one_by_one_then_asks_and_decides(backfill_clicks: DAG) -> None:
    after = {task.task_id: task.downstream_task_ids for task in backfill_clicks.tasks}
    assert after == {
        "plan_backfill": {"run_chunk", "end_backfill"},
        "run_chunk": {"end_backfill"},
        "end_backfill": {"waits_for_decision", "find_held"},
        "waits_for_decision": {"ask"},
        "ask": {"decide_backfill"},
        "decide_backfill": {"ask_again", "find_held"},
        "ask_again": set(),
        "find_held": {"ask_about_held"},
        "ask_about_held": set(),
    }
    # There may be no chunk left to run.
    assert backfill_clicks.get_task("end_backfill").trigger_rule == TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS
    assert backfill_clicks.get_task("find_held").trigger_rule == TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS
    assert backfill_clicks.get_task("run_chunk").max_active_tis_per_dag == 1
    ask = backfill_clicks.get_task("ask")
    assert isinstance(ask, HITLOperator)
    assert (ask.options, ask.response_timeout, ask.defaults) == (["Approve", "Drop"], None, None)
    # Airflow would fill in what the form said of the whole backfill.
    assert not set(ask.params) & set(backfill_clicks.params)


@pytest.mark.parametrize(("field", "wrong"), [("from", None), ("to", None), ("chunk", 0), ("source", "all")])
def test_a_backfill_s_form_takes_no_nonsense(backfill_clicks: DAG, field: str, wrong: object) -> None:
    with pytest.raises(ParamValidationError):
        backfill_clicks.params.get_param(field).resolve(wrong)

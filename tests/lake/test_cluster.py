"""All jobs on a standalone Spark cluster of two workers, data in S3, locks in PostgreSQL: what the sample says.

Workers killed in the middle of a job, others that come later, and the server killed and started again.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import httpx
import psycopg2
import pytest

from include.hours import Hour, HourRange
from include.job_arguments import JobArguments
from include.settings import REPOSITORY, Settings
from include.storage import place
from include.tables import (
    CLICKS_BY_COUNTRY_LIVE,
    CLICKS_BY_URL_LIVE,
    PUBLISHED,
    PUBLISHED_CLICKS_BY_URL_HOURLY,
)
from ops.home import Home, load_secrets
from ops.submit_settings import write_settings
from samples.sample_logs import make_sample
from samples.sample_spec import SampleSpec
from spark_jobs.backfill.plan import Request
from spark_jobs.topology.model import describe
from tests.stream.kafka_broker import running_broker
from tests.stream.landed_records import landed_records
from tests.stream.live_truth import live_counts, true_counts
from tests.stream.streamed_lake import StreamedLake
from tests.support.postgres_server import postgres_server
from tests.support.published_clicks import published_clicks, true_clicks
from tests.support.spark_cluster import SparkCluster, spark_cluster
from tests.support.spark_server import SparkServer, open_session, started
from tests.support.temporary_lake import JOBS, TemporaryLake, make_settings
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from samples.truth import Truth
    from tests.support.s3_server import S3Server

#: Of which files, a task reads each: enough for all workers.
SPEC = SampleSpec(start=Hour.parse("2026-03-01T00"), hours=6, clicks_per_hour=3000, seed=11, files_per_hour=4)
BEFORE = HourRange(SPEC.start, SPEC.start.plus(3))
KILLED = HourRange(SPEC.start.plus(3), SPEC.start.plus(6))

pytestmark = [pytest.mark.slow, pytest.mark.servers, pytest.mark.faults]


@pytest.fixture(scope="module")
def cluster(s3: S3Server) -> Iterator[SparkCluster]:
    with spark_cluster(2, s3.variables) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def homes(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Home]]:
    """Makes homes whose data is in S3."""
    with postgres_server() as postgres:
        bucket = place(s3.make_bucket("cluster"))

        def make(name: str) -> Home:
            home = Home(tmp_path_factory.mktemp(name), bucket / name, postgres.make_database(name))
            home.make()
            load_secrets(home)
            return home

        yield make


@pytest.fixture(scope="module")
def server(cluster: SparkCluster, homes: Callable[[str], Home]) -> Iterator[SparkServer]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("CLICKMILL_SPARK_MASTER", cluster.master)
        with started(SparkServer.of(homes("served"))) as server:
            yield server


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return make_settings(tmp_path_factory.mktemp("settings") / "home")


def of_home(settings: Settings, home: Home) -> Settings:
    return replace(settings, home=home.path, data_folder=home.data, locks_database=home.locks_database)


@pytest.fixture(scope="module")
def lake(server: SparkServer, settings: Settings) -> Iterator[TemporaryLake]:
    with open_session(server.remote) as session:
        yield TemporaryLake(session, of_home(settings, server.home))


@pytest.fixture(scope="module")
def truth(lake: TemporaryLake) -> Truth:
    return make_sample(SPEC, lake.settings.landing)


@pytest.fixture(scope="module")
def published_before(lake: TemporaryLake, truth: Truth) -> None:
    """The hours before those in which somebody is killed."""
    lake.run_all(str(BEFORE.start), str(BEFORE.end))


def executors(server: SparkServer) -> dict[str, dict[str, Any]]:
    """Those that have been there, by their id."""
    address = f"http://127.0.0.1:{server.ports.spark_ui}/api/v1/applications"
    (application,) = httpx.get(address).json()
    entries = httpx.get(f"{address}/{application['id']}/allexecutors").json()
    return {entry["id"]: entry for entry in entries if entry["id"] != "driver"}


def lose_lock(home: Home) -> None:
    """End the connection of whoever holds the lock of the lake's Spark, once somebody does."""
    assert home.locks_database is not None
    held = "FROM pg_stat_activity WHERE application_name LIKE 'spark-server|%'"
    with closing(psycopg2.connect(home.locks_database)) as connection, connection.cursor() as cursor:
        connection.autocommit = True

        def is_ended() -> bool:
            cursor.execute(f"SELECT pg_terminate_backend(pid) {held}")
            return cursor.rowcount > 0

        wait_until(is_ended, "the lock is taken", 120)


def test_jobs_that_spark_submit_runs_give_what_the_sample_says(
    cluster: SparkCluster, homes: Callable[[str], Home], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the operator of Airflow's provider, in client mode: one driver, which ends if its lock is lost; then again."""
    from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

    home = homes("submitted")
    lake = TemporaryLake(None, of_home(settings, home))
    truth = make_sample(SPEC, lake.settings.landing)
    variables = {
        "CLICKMILL_HOME": str(home.path), "CLICKMILL_DATA": str(home.data), "CLICKMILL_LOCKS": str(home.locks_database),
        "CLICKMILL_SOURCES": str(settings.sources_file), "CLICKMILL_PIPELINE": str(settings.pipeline_file),
        "PYTHONPATH": str(REPOSITORY), "SPARK_CONF_DIR": str(REPOSITORY / "config"),
    }  # fmt: skip
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_CLUSTER", json.dumps({"conn_type": "spark", "host": cluster.master}))
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    # As where the shell has used Spark Connect before.
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    backfill = SparkSubmitOperator(
        task_id="backfill", conn_id="spark_cluster", properties_file=str(write_settings(home)), env_vars=variables,
        application=str(REPOSITORY / "clickmill" / "__main__.py"),
        application_args=["backfill", "--source=web", f"--from={SPEC.start}", f"--to={KILLED.end}", "--because=new"],
    )  # fmt: skip
    losing = Thread(target=lose_lock, args=(home,))
    losing.start()
    with pytest.raises(Exception, match="the lock spark-server is lost with its connection"):
        backfill.execute({})
    losing.join()
    assert not lake.rows(PUBLISHED_CLICKS_BY_URL_HOURLY)
    backfill.execute({})
    for table in PUBLISHED:
        assert published_clicks(lake, table) == true_clicks(truth, table)


@pytest.mark.usefixtures("published_before")
def test_all_jobs_give_what_the_sample_says_and_both_workers_work(
    lake: TemporaryLake, server: SparkServer, truth: Truth
) -> None:
    for table in PUBLISHED:
        clicks = published_clicks(lake, table)
        # Late clicks of the hours after them are not in yet.
        assert clicks.total() > 0
        assert clicks <= true_clicks(truth, table)
    lines = {hour: row["lines"] for hour, row in lake.accounting().items()}
    assert lines == {str(hour): truth.log_hours[str(hour)].lines for hour in BEFORE}
    worked = [executor["completedTasks"] for executor in executors(server).values()]
    assert len(worked) == 2
    assert min(worked) > 0


def test_topology_says_which_executor_ran_which_task(
    lake: TemporaryLake, server: SparkServer, truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spark_jobs.aggregate.job import aggregate
    from spark_jobs.topology.job import explain

    monkeypatch.setenv("CLICKMILL_SPARK_UI_URL", f"http://127.0.0.1:{server.ports.spark_ui}")
    arguments = JobArguments.of("web", str(BEFORE.start), str(BEFORE.end))
    (job,) = explain(lake.spark, lake.settings, arguments, {"aggregate_clicks": aggregate})
    placed: set[str] = set()
    for query in job.queries:
        assert [task for tasks in query.placement.values() for task in tasks] != []
        placed.update(query.placement)
    assert placed == {f"executor {name} on 127.0.0.1" for name in executors(server)}
    text = describe(job, workers=2)
    assert "Placement: tasks by the executors that ran them:" in text
    assert "Simulation" not in text


def in_the_middle(server: SparkServer, job: Callable[[], object], then: Callable[[], None]) -> list[BaseException]:
    """Run a job, and do something once its tasks run on the workers; what the job raised."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            job()
        except BaseException as error:
            errors.append(error)

    def has_begun_or_ended(done: dict[str, int], running: Thread) -> bool:
        begun = any(executor["completedTasks"] > done.get(name, 0) for name, executor in executors(server).items())
        return begun or not running.is_alive()

    for _ in range(5):  # it may have ended before anybody has looked
        done = {name: executor["completedTasks"] for name, executor in executors(server).items()}
        running = Thread(target=run)
        running.start()
        wait_until(partial(has_begun_or_ended, done, running), "the job runs on the workers", 60)
        if running.is_alive():
            break
    assert running.is_alive(), errors
    then()
    running.join(300)
    assert not running.is_alive()
    return errors


def require_one_lost_and_one_came(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Of these executors; the one that came has worked."""
    lost, came = {name for name in now if not now[name]["isActive"]} - before.keys(), now.keys() - before.keys()
    assert lost == set(), "one that had been there is lost, none of the new ones"
    assert sum(not executor["isActive"] for executor in now.values()) == 1 + sum(
        not executor["isActive"] for executor in before.values()
    )
    assert [now[name]["completedTasks"] > 0 for name in came] == [True], "the worker that came works too"


@pytest.mark.usefixtures("published_before")
@pytest.mark.parametrize("job", ["ingest", "aggregate"])
def test_a_worker_is_killed_in_the_middle_of_a_job_and_another_comes(
    lake: TemporaryLake, server: SparkServer, cluster: SparkCluster, truth: Truth, job: str
) -> None:
    before = executors(server)
    run = partial(lake.run, job, str(KILLED.start), str(KILLED.end))
    assert in_the_middle(server, run, cluster.replace_worker) == []
    for name in JOBS[JOBS.index(job) + 1 :]:
        lake.run(name, str(KILLED.start), str(KILLED.end))
    for table in PUBLISHED:
        assert published_clicks(lake, table) == true_clicks(truth, table)
    require_one_lost_and_one_came(before, executors(server))


@pytest.fixture
def streamed(server: SparkServer, s3: S3Server, tmp_path: Path) -> Iterator[StreamedLake]:
    """A lake in S3 of a topic, checkpoints on a disk that all workers see; 2,000 clicks a micro-batch, none late."""
    data = place(s3.make_bucket("streamed")) / "clickmill"
    settings = replace(make_settings(tmp_path / "home"), data_folder=data, locks_database=server.home.locks_database)
    with running_broker() as broker, open_session(server.remote) as session:
        streamed = StreamedLake(session, settings, broker, "clicks")
        streamed.configure(max_rows_per_batch=2000)
        sources = settings.sources_file.read_text(encoding="utf-8")
        settings.sources_file.write_text(
            sources.replace("scheduled = true", "scheduled = true\nlateness_hours = 700", 1)
        )
        broker.create_topic(streamed.topic, 3)
        yield streamed


def test_a_worker_is_killed_in_the_middle_of_a_stream_and_another_comes(
    streamed: StreamedLake, server: SparkServer, cluster: SparkCluster, tmp_path: Path
) -> None:
    truth = make_sample(SPEC, tmp_path / "landing")
    lines = landed_records(tmp_path / "landing", "web", list(SPEC.log_hours), partitions=3)
    streamed.broker.produce(streamed.topic, lines)
    before = executors(server)
    assert in_the_middle(server, partial(streamed.read_all, live=True), cluster.replace_worker) == []
    require_one_lost_and_one_came(before, executors(server))
    streamed.backfill(Request("web", SPEC.log_hours, SPEC.hours, is_staged=False))
    for table in PUBLISHED:
        assert published_clicks(streamed, table) == true_clicks(truth, table)
    for live, key in ((CLICKS_BY_URL_LIVE, "url"), (CLICKS_BY_COUNTRY_LIVE, "country_code")):
        assert live_counts(streamed, live, key) == true_counts(streamed, key)


def test_the_server_is_killed_in_the_middle_of_a_job_which_is_run_again(
    lake: TemporaryLake, server: SparkServer, truth: Truth
) -> None:
    def kill_and_start() -> None:
        server.kill()
        server.start()

    run = partial(lake.run, "ingest", str(KILLED.start), str(KILLED.end))
    assert len(in_the_middle(server, run, kill_and_start)) == 1, "its session is gone with the server"
    with open_session(server.remote) as session:
        again = TemporaryLake(session, lake.settings)
        again.run_all(str(SPEC.start), str(KILLED.end))
        for table in PUBLISHED:
            assert published_clicks(again, table) == true_clicks(truth, table)

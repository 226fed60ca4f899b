"""docker-compose.yml for real: hours through Airflow on a Spark cluster, and a container of each kind killed.

By `make compose-test`, and of it what is not slow by CI; not by `make test-all`. What the file says is checked
everywhere, by tests/ops/test_compose_files.py.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from deltalake import DeltaTable

from include.errors import ClickmillError
from include.hours import Hour, HourRange
from include.settings import REPOSITORY
from include.storage import find, place
from include.tables import Table
from include.tables.counts import PUBLISHED_CLICKS_BY_COUNTRY_HOURLY, PUBLISHED_CLICKS_BY_URL_HOURLY
from ops.airflow_api import CLICKS_HOURLY, AirflowApi, ApiError
from ops.backfill import run_hours
from ops.services.running import Services
from samples.sample_logs import make_sample
from samples.sample_spec import SampleSpec
from samples.truth import Truth
from tests.end_to_end.silent_display import Silent
from tests.support.containers import Project, executors, project
from tests.support.published_clicks import ByHourAndKey, true_clicks
from tests.support.questions import answer, question
from tests.support.received import Client
from tests.support.waiting import wait_until

PATIENCE = 600.0
PUBLISHED = (PUBLISHED_CLICKS_BY_URL_HOURLY, PUBLISHED_CLICKS_BY_COUNTRY_HOURLY)
FIRST = Hour.parse("2026-03-01T00")
HOURS = 12
BROKEN = Hour.parse("2026-03-03T05")
#: In each container.
LINEAGE = "/tmp/lineage.json"
#: Which containers are killed while which hours of the sample run; all kinds, in three tests, for a task is tried again
#: three times.
KILLED = {
    "spark": (3, ("spark-worker", "spark-connect", "spark-master", "spark-tls", "spark-history")),
    "airflow": (6, ("airflow-worker", "airflow-scheduler", "airflow-dag-processor", "airflow-triggerer",
                    "airflow-api-server")),
    "state": (9, ("redis", "s3", "postgres")),
}  # fmt: skip


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """The team's containers; clicks over TCP are received, and OpenLineage's events written to a file."""
    config = Path(shutil.copytree(REPOSITORY / "config", tmp_path_factory.mktemp("team") / "config"))
    sources = config / "sources.toml"
    received = "[sources.collector.sockets]\n"
    sources.write_text(sources.read_text().replace(received, f'{received}host = "0.0.0.0"\nroll_seconds = 1.0\n'))
    lineage = {"type": "file", "log_file_path": LINEAGE, "append": True}
    settings = {"CLICKMILL_CONFIG": str(config), "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(lineage)}
    with project("docker-compose.yml", **settings) as containers:
        yield containers


def services(running: Project, user: str, password: str) -> Services:
    port = int(running.values["CLICKMILL_AIRFLOW_PORT"])
    return Services(REPOSITORY, port, 0, 0, user, password, "")


@pytest.fixture(scope="module")
def admin(running: Project) -> AirflowApi:
    api = AirflowApi(services(running, "admin", running.values["CLICKMILL_ADMIN_PASSWORD"]))
    api.wait_for_dag(CLICKS_HOURLY)
    return api


def user(running: Project, admin: AirflowApi, role: str) -> AirflowApi:
    """A client of a user who has this role alone."""
    name = role.lower()
    running.inside(
        "airflow-api-server", "python", "-m", "ops.containers", "airflow", "users", "create", "--username", name,
        "--firstname", name, "--lastname", name, "--email", f"{name}@localhost", "--role", role, "--password", "secret",
    )  # fmt: skip
    return AirflowApi(services(running, name, "secret"))


@pytest.fixture(scope="module")
def operator(running: Project, admin: AirflowApi) -> AirflowApi:
    api = user(running, admin, "Operator")
    api.unpause(CLICKS_HOURLY)
    return api


@pytest.fixture(scope="module")
def viewer(running: Project, admin: AirflowApi) -> AirflowApi:
    return user(running, admin, "Viewer")


def page(api: AirflowApi, path: str) -> tuple[int, str]:
    """Status and text of a page on data quality, for the client's user."""
    api.call("GET", "/api/v2/version")
    cookie = {"Cookie": f"_token={api._token}"}
    answer = httpx.get(f"{api._services.airflow_url}/data-quality/{path}", headers=cookie, timeout=PATIENCE)
    return answer.status_code, answer.text


def store(running: Project) -> dict[str, str]:
    """How this machine reaches the object store."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{running.values['CLICKMILL_S3_PORT']}",
        "AWS_ALLOW_HTTP": "true", "AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": running.values["CLICKMILL_S3_ACCESS_KEY"],
        "AWS_SECRET_ACCESS_KEY": running.values["CLICKMILL_S3_SECRET_KEY"],
    }  # fmt: skip


@pytest.fixture(scope="module")
def landing(running: Project) -> Iterator[Path]:
    """The landing zone, for an uploader on this machine."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in store(running).items():
            patch.setenv(name, value)
        yield place("s3://clickmill/landing")


@pytest.fixture(scope="module")
def truth(landing: Path) -> Truth:
    """What is true of the sample that was put into the landing zone."""
    return make_sample(SampleSpec(start=FIRST, hours=HOURS, clicks_per_hour=800, seed=5, is_clean=True), landing)


def hours(first: int, count: int) -> list[Hour]:
    return [FIRST.plus(first + number) for number in range(count)]


def of_hours(counts: ByHourAndKey, wanted: list[Hour]) -> ByHourAndKey:
    """Those of these click hours alone: a clean sample has no late clicks."""
    names = {str(hour) for hour in wanted}
    return Counter({key: count for key, count in counts.items() if key[0] in names})


def in_the_lake(running: Project, table: Table) -> ByHourAndKey:
    delta_table = DeltaTable(f"s3://clickmill/lake/{table.name}", storage_options=store(running))
    key = table.key[-1]
    return Counter(
        {
            (str(Hour.of(row["click_date"], row["click_hour"])), row[key]): row["click_count"]
            for row in delta_table.to_pyarrow_table().to_pylist()
        }
    )


def in_the_database(running: Project, table: Table) -> ByHourAndKey:
    """As a dashboard reads it: by the server's address, with the reader's password."""
    query = f"SELECT click_date, click_hour, {table.key[-1]}, click_count FROM clickmill.{table.name}"
    password = f"PGPASSWORD={running.values['CLICKMILL_READER_PASSWORD']}"
    psql = ("psql", "postgresql://reader@postgres/clickmill", "-XAt", "-F", "\t", "-c", query)
    rows = running.inside("postgres", "env", password, *psql).splitlines()
    counts: ByHourAndKey = Counter()
    for day, hour, name, count in (row.split("\t") for row in rows):
        counts[f"{day}T{int(hour):02}", name] = int(count)
    return counts


def run(api: AirflowApi, wanted: list[Hour], again: bool = False) -> None:
    outcome = run_hours(api, CLICKS_HOURLY, wanted, "web", again=again, at_once=2, display=Silent())
    assert not outcome.failures, outcome.failures


@pytest.fixture(scope="module")
def first_hours(operator: AirflowApi, truth: Truth) -> list[Hour]:
    """The sample's first hours, after they have run."""
    wanted = hours(0, 3)
    run(operator, wanted)
    return wanted


@pytest.mark.parametrize("table", PUBLISHED, ids=lambda table: table.name)
def test_hours_run_on_the_cluster_and_are_published_in_s3_and_postgres(
    running: Project, truth: Truth, first_hours: list[Hour], table: Table
) -> None:
    expected = of_hours(true_clicks(truth, table), first_hours)
    assert expected
    assert of_hours(in_the_lake(running, table), first_hours) == expected
    assert of_hours(in_the_database(running, table), first_hours) == expected


def test_both_workers_had_tasks(running: Project, first_hours: list[Hour]) -> None:
    listing = executors(running)
    assert len({executor["hostPort"].partition(":")[0] for executor in listing}) == 2, listing  # type: ignore[attr-defined]
    assert all(executor["totalTasks"] for executor in listing)


def test_run_again_nothing_changes(running: Project, operator: AirflowApi, first_hours: list[Hour]) -> None:
    before = in_the_lake(running, PUBLISHED[0]), in_the_database(running, PUBLISHED[0])
    run(operator, first_hours[:1], again=True)
    assert (in_the_lake(running, PUBLISHED[0]), in_the_database(running, PUBLISHED[0])) == before


def test_a_viewer_sees_and_starts_nothing(viewer: AirflowApi, first_hours: list[Hour]) -> None:
    assert viewer.runs(CLICKS_HOURLY, first_hours)
    with pytest.raises(ApiError) as refused:
        run(viewer, first_hours, again=True)
    assert refused.value.status == 403


def test_openlineage_is_told_which_tables_a_task_read_and_wrote(running: Project, first_hours: list[Hour]) -> None:
    told = [json.loads(line) for line in running.inside("airflow-worker", "cat", LINEAGE).splitlines()]
    of_publish = [
        event
        for event in told
        if (event["job"]["name"], event["eventType"]) == ("clicks_hourly.publish_clicks", "COMPLETE")
    ]
    assert len(of_publish) >= len(first_hours)
    for kind, name in (("inputs", "clicks_by_url_hourly"), ("outputs", "published_clicks_by_url_hourly")):
        named = {(data["namespace"], data["name"]) for event in of_publish for data in event[kind]}
        assert ("s3://clickmill", f"lake/{name}") in named, kind


def test_a_held_hour_is_published_by_an_approver_and_not_by_an_operator(
    running: Project,
    landing: Path,
    admin: AirflowApi,
    operator: AirflowApi,
    viewer: AirflowApi,
    first_hours: list[Hour],
) -> None:
    broken = SampleSpec(start=BROKEN, hours=1, clicks_per_hour=600, seed=5, broken={BROKEN: 0.7})
    truth = make_sample(broken, landing)
    approver = user(running, admin, "Approver")
    run(operator, [BROKEN])
    assert of_hours(in_the_lake(running, PUBLISHED[0]), [BROKEN]) == Counter()

    def refused(api: AirflowApi, method: str, path: str, body: dict[str, Any]) -> int:
        with pytest.raises(ApiError) as error:
            api.call(method, path, body)
        return error.value.status

    run_id = question(admin, BROKEN)
    # The pages offer what each may do, and refuse the rest.
    plan = f"plan?source=web&from={BROKEN}&to={BROKEN.plus(1)}"
    for api, decides, plans in ((operator, False, True), (approver, True, False), (viewer, False, False)):
        status, text = page(api, f"hours/{BROKEN}")
        assert (status, f'value="{run_id}"' in text, "/plan?" in text) == (200, decides, plans)
        status, text = page(api, plan)
        assert (status, "web: can be started" in text) == ((200, True) if plans else (403, False))
    publish = {"chosen_options": ["Publish anyway"], "params_input": {"reason": "that is all"}}
    asked = f"/api/v2/dags/held_hours/dagRuns/{run_id}/taskInstances/ask/-1/hitlDetails"
    assert refused(operator, "PATCH", asked, publish) == 403
    for dag in ("held_hours", "backfill_clicks"):
        assert refused(approver, "POST", f"/api/v2/dags/{dag}/dagRuns", {"logical_date": None}) == 403, dag
    # There is no such question: who may answer is told so, who may not is refused before.
    none = "/api/v2/dags/backfill_clicks/dagRuns/none/taskInstances/ask/-1/hitlDetails"
    assert [refused(api, "PATCH", none, publish) for api in (operator, approver)] == [403, 404]
    with pytest.raises(ApiError) as of_hour:
        run(approver, [BROKEN], again=True)
    assert of_hour.value.status == 403

    states = answer(approver, run_id, "Publish anyway", "that is all")
    assert states == {"ask": "success", "decide_held": "success", "ask_again": "skipped"}
    for table in PUBLISHED:
        expected = of_hours(true_clicks(truth, table), [BROKEN])
        assert expected
        assert of_hours(in_the_lake(running, table), [BROKEN]) == expected
        assert of_hours(in_the_database(running, table), [BROKEN]) == expected
    journal = DeltaTable("s3://clickmill/lake/journal", storage_options=store(running)).to_pyarrow_table()
    decided = [row for row in journal.to_pylist() if row["event"] == "published_anyway"]
    assert [(row["subject"], row["actor"]) for row in decided] == [(str(BROKEN), "approver")]


def test_what_takes_back_is_for_stewards_and_on_record(
    running: Project, admin: AirflowApi, operator: AirflowApi, first_hours: list[Hour]
) -> None:
    steward = user(running, admin, "Steward")

    def trigger(api: AirflowApi, dag: str, **form: Any) -> str:
        body = {"logical_date": None, "conf": form}
        return str(api.call("POST", f"/api/v2/dags/{dag}/dagRuns", body)["dag_run_id"])

    form = {"backfill": "20260301T050000-0000", "reason": "wrong files"}
    for api, dag in ((operator, "undo_backfill"), (steward, CLICKS_HOURLY)):
        with pytest.raises(ApiError) as refused:
            trigger(api, dag, **form)
        assert refused.value.status == 403, dag
    trigger(steward, "undo_backfill", **form)

    def failed() -> list[dict[str, Any]]:
        lake = "s3://clickmill/lake/journal"
        if not DeltaTable.is_deltatable(lake, storage_options=store(running)):
            return []
        rows = DeltaTable(lake, storage_options=store(running)).to_pyarrow_table().to_pylist()
        acts = sorted((row for row in rows if row["subject"] == form["backfill"]), key=lambda row: row["at"])
        return acts if acts and acts[-1]["event"] == "failed" else []

    acts = wait_until(failed, "the journal says that it failed")
    assert (acts[0]["act"], acts[0]["actor"], acts[0]["because"]) == ("undo_backfill", "steward", "wrong files")
    assert f"no backfill '{form['backfill']}'" in dict(acts[-1]["details"])["error"]


def test_clicks_over_tcp_are_in_the_landing_zone_once_though_the_receiver_is_killed(
    running: Project, landing: Path
) -> None:
    def landed() -> list[bytes]:
        files = find(landing / "collector", "log_date=*/log_hour=*/*.log")
        return sorted(line for file in files for line in file.path.read_bytes().splitlines())

    running.up("receiver", profile="receiver")
    sent: list[bytes] = []
    for number in range(2):
        running.wait_until_well()
        client = Client(9990)
        lines = [b"%d" % line for line in range(1000 * number, 1000 * number + 1000)]
        client.send(*(line + b"\n" for line in lines))
        client.wait_for(len(lines))
        client.close()
        sent += lines
        if number == 0:
            running.kill(running.container("receiver"))
    waiting = ("sh", "-c", "find /var/lib/clickmill/received -name '*.log*'")
    wait_until(lambda: not running.inside("receiver", *waiting).strip(), "all lines have left the receiver", PATIENCE)
    assert landed() == sorted(sent)


_HANDSHAKE = """
import socket, ssl
with socket.create_connection(("spark-tls", 15002)) as connection:
    ssl.create_default_context().wrap_socket(connection, server_hostname="spark-tls")
"""


def test_spark_connect_is_reached_by_tls_and_by_nobody_without_the_token(running: Project) -> None:
    job = "from pyspark.sql.connect.session import SparkSession as S; import sys; "
    count = job + "print(S.builder.remote(sys.argv[1]).getOrCreate().range(7).count())"

    def ask(remote: str) -> str:
        return running.inside("airflow-worker", "python", "-c", f"{count}", remote)

    token = running.values["CLICKMILL_SPARK_TOKEN"]
    assert ask(f"sc://spark-tls:15002/;use_ssl=true;token={token}").strip() == "7"
    with pytest.raises(ClickmillError, match=r"(?i)unauthenticated"):
        ask("sc://spark-tls:15002/;use_ssl=true;token=guessed")
    # Whoever does not know the authority refuses the server.
    with pytest.raises(ClickmillError, match="certificate verify failed"):
        running.inside("airflow-worker", "python", "-c", _HANDSHAKE)
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.get(f"http://127.0.0.1:{running.values['CLICKMILL_SPARK_PORT']}/", trust_env=False)


def test_only_loopback_listens_on_this_machine(running: Project) -> None:
    ports = {int(value) for name, value in running.values.items() if name.endswith("_PORT")}
    listening = {
        (connection.laddr.port, connection.laddr.ip)
        for connection in psutil.net_connections("inet")
        if connection.status == "LISTEN"
    }
    assert {address for address in listening if address[0] in ports} == {(port, "127.0.0.1") for port in ports}


def test_no_container_of_ours_has_root_or_a_place_to_write_but_its_volumes(running: Project) -> None:
    for service in running.services():
        if service in ("postgres", "redis", "s3", "spark-tls", "kafka"):
            continue
        assert running.inside(service, "id", "-u").strip() == "1000", service
        tried = running.inside(service, "sh", "-c", "touch /opt/clickmill/x 2>&1 || true")
        assert "Read-only file system" in tried, service
        assert running.inside(service, "grep", "CapEff", "/proc/1/status").split()[1].strip("0") == "", service


@pytest.mark.slow
@pytest.mark.parametrize("kind", KILLED)
def test_a_container_of_each_kind_is_killed_and_nothing_is_lost(
    running: Project, admin: AirflowApi, operator: AirflowApi, truth: Truth, first_hours: list[Hour], kind: str
) -> None:
    first, services = KILLED[kind]
    wanted = hours(first, 3)
    runs = []

    def start() -> None:
        runs.append(operator.run_range(CLICKS_HOURLY, HourRange(wanted[0], wanted[-1].plus(1)), "web").run_id)

    def state() -> Any:
        return admin.call("GET", f"/api/v2/dags/{CLICKS_HOURLY}/dagRuns/{runs[-1]}")["state"]

    def require_success() -> None:
        assert state() == "success", [(task.task_id, task.state) for task in admin.tasks(CLICKS_HOURLY, runs[-1])]

    start()
    for service in services:
        # A container may take longer to come back than the hours to be published: each is killed while they run.
        if state() not in ("queued", "running"):
            require_success()
            start()
        victim = running.container(service)
        before = running.started(victim)
        running.kill(victim)
        wait_until(lambda victim=victim, before=before: running.started(victim) != before, f"{victim} again", 120)  # type: ignore[misc]
        running.wait_until_well()
    wait_until(lambda: state() in ("success", "failed"), f"{runs[-1]} ends", PATIENCE)
    require_success()
    # A master that was started again knows them still.
    assert executors(running)
    for table in PUBLISHED:
        expected = of_hours(true_clicks(truth, table), wanted)
        assert of_hours(in_the_lake(running, table), wanted) == expected
        assert of_hours(in_the_database(running, table), wanted) == expected


_PRODUCE = """
import json, sys, time
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka import KafkaException
admin = AdminClient({"bootstrap.servers": "kafka:9092"})
try:
    admin.create_topics([NewTopic("clicks", 4, 1)])["clicks"].result()
except KafkaException as error:
    if "exists" not in str(error): raise
producer = Producer({"bootstrap.servers": "kafka:9092", "acks": "all"})
for number in range(int(sys.argv[1]), int(sys.argv[2])):
    click = {"event_id": f"e{number}", "ts": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
             "url": "https://example.com/", "geo": {"country": "DE"}, "visitor_id": f"v{number % 7}"}
    producer.produce("clicks", json.dumps(click).encode(), str(number).encode())
assert producer.flush(60) == 0
"""


@pytest.mark.slow
def test_a_stream_in_a_container_of_its_own_goes_on_where_it_was_killed(running: Project) -> None:
    def ids() -> list[str]:
        if not DeltaTable.is_deltatable("s3://clickmill/lake/clicks", storage_options=store(running)):
            return []
        clicks = DeltaTable("s3://clickmill/lake/clicks", storage_options=store(running))
        rows = clicks.to_pyarrow_table(columns=["event_id"], filters=[("source", "=", "web_stream")])
        return sorted(rows["event_id"].to_pylist())

    running.up("kafka", profile="kafka")
    running.wait_until_well()
    running.inside("airflow-worker", "python", "-c", _PRODUCE, "0", "500")
    running.up("stream", profile="kafka")
    wait_until(lambda: len(ids()) >= 500, "clicks come", PATIENCE)
    running.kill(running.container("stream"))
    running.inside("airflow-worker", "python", "-c", _PRODUCE, "400", "1000")
    wait_until(lambda: len(ids()) >= 1000, "the stream goes on", PATIENCE)
    running.wait_until_well()

    assert ids() == sorted(f"e{number}" for number in range(1000))

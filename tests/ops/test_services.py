"""Services without starting any: what they are told, who could reach them, and whom a stop would end."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from include.errors import ClickmillError
from ops.bootstrap import REPOSITORY
from ops.home import Home, Secrets, load_secrets
from ops.services.__main__ import main
from ops.services.environment import PRELOADED, render_settings, service_environment
from ops.services.health import unhealthy
from ops.services.logs import failure, last_lines
from ops.services.migration import begin_migration, migration_stamp
from ops.services.programs import AIRFLOW, BROKER, RECEIVER, SPARK, TRIGGERER
from ops.services.running import Ports, Services
from ops.services.start import start_timeout
from ops.services.stop import status, stop
from ops.services.supervisor import LONGEST_SOCKET_PATH, MARK, ServiceState, end_marked, marked_processes, socket_path
from ops.setup.prerequisites import find_java

PORTS = Ports(airflow=8081, spark=15003, spark_ui=4041)
JAVA = Path("/opt/jdk/bin/java")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.make()
    return made


@pytest.fixture
def keys(home: Home) -> Secrets:
    return load_secrets(home)


def environment_of(home: Home, keys: Secrets, **shell: str) -> dict[str, str]:
    return service_environment(home, PORTS, keys, JAVA, {"PATH": "/usr/bin", **shell})


def rendered_spark_settings(environment: dict[str, str]) -> dict[str, str]:
    template = (REPOSITORY / "config" / "spark-defaults.conf").read_text()
    lines = render_settings(template, environment, "spark-defaults.conf").splitlines()
    pairs = [line.split(None, 1) for line in lines if line.strip() and not line.startswith("#")]
    return {name: value.strip() for name, value in pairs}


# --- settings files -------------------------------------------------------------------------------


def test_variable_is_filled_in_and_an_unset_or_empty_one_takes_its_default() -> None:
    template = "a ${A:-1}\nb ${B:-2}\nc ${C:-3}/${A:-4}\nd ${D:-}\n"

    assert render_settings(template, {"A": "x", "B": ""}, "test") == "a x\nb 2\nc 3/x\nd \n"


def test_comment_is_left_as_it_is() -> None:
    assert render_settings("# ${MISSING} is kept\n", {}, "test") == "# ${MISSING} is kept\n"


def test_every_variable_without_value_and_default_is_named() -> None:
    with pytest.raises(ClickmillError, match=r"test.conf needs a value for FIRST, SECOND: ") as error:
        render_settings("a ${FIRST}\nb ${SECOND}\nc ${THIRD:-3}\n", {}, "test.conf")

    assert error.value.exit_code == 2


def test_spark_answers_on_loopback_only_and_on_the_chosen_ports(home: Home, keys: Secrets) -> None:
    environment = environment_of(home, keys)
    settings = rendered_spark_settings(environment)

    assert settings["spark.connect.grpc.binding.address"] == "127.0.0.1"
    assert settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert environment["SPARK_LOCAL_IP"] == "127.0.0.1"  # where the UI binds
    assert settings["spark.connect.grpc.binding.port"] == "15003"
    assert settings["spark.ui.port"] == "4041"
    assert settings["spark.port.maxRetries"] == "0"


def test_master_memory_partitions_and_java_options_can_be_set_from_the_shell(home: Home, keys: Secrets) -> None:
    usual = rendered_spark_settings(environment_of(home, keys))
    changed = rendered_spark_settings(
        environment_of(
            home,
            keys,
            CLICKMILL_SPARK_MASTER="local[8]",
            CLICKMILL_SPARK_DRIVER_MEMORY="12g",
            CLICKMILL_SPARK_SHUFFLE_PARTITIONS="16",
            CLICKMILL_SPARK_JAVA_OPTIONS="-Xlog:gc",
        )
    )

    names = ("spark.master", "spark.driver.memory", "spark.sql.shuffle.partitions")
    assert [changed[name] for name in names] == ["local[8]", "12g", "16"]
    assert all(usual[name] and usual[name] != changed[name] for name in names)
    options = "spark.driver.extraJavaOptions"
    assert changed[options] == f"{usual[options]} -Xlog:gc"


def test_java_takes_the_options_as_they_are_meant(home: Home, keys: Secrets) -> None:
    """Java is told to leave out what it does not know: a misspelt option would do nothing, and nobody would know."""
    options = shlex.split(rendered_spark_settings(environment_of(home, keys))["spark.driver.extraJavaOptions"])
    asked = [find_java(), *options, "-XX:+PrintFlagsFinal", "-version"]
    answer = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    told = {line.split()[1]: line.split()[3] for line in answer.splitlines() if "{command line}" in line}
    given = {option[4:].partition("=") for option in options if option.startswith("-XX:") and "=" in option}
    assert {name: told[name] for name, _, _ in given} == {name: _bytes(value) for name, _, value in given}


def _bytes(size: str) -> str:
    """As Java prints it."""
    return str(int(size[:-1]) << 20) if size.endswith("m") else size


def test_spark_gets_local_jars_only(home: Home, keys: Secrets) -> None:
    settings = rendered_spark_settings(environment_of(home, keys))

    jars = settings["spark.jars"].split(",")
    assert jars
    assert all(Path(jar).parent == REPOSITORY / ".jars" for jar in jars)
    assert not [name for name in settings if name.startswith("spark.jars.")], "nothing is resolved at a start"


# --- the environment of the services --------------------------------------------------------------


def test_airflow_answers_on_loopback_only_and_its_addresses_follow_the_port(home: Home, keys: Secrets) -> None:
    environment = environment_of(home, keys)

    assert environment["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert environment["AIRFLOW__API__PORT"] == "8081"
    assert environment["AIRFLOW__API__BASE_URL"] == "http://localhost:8081"
    assert environment["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://localhost:8081/execution/"


def test_airflow_and_sparks_ui_listen_where_they_are_told_and_spark_connect_stays_on_loopback(
    home: Home, keys: Secrets
) -> None:
    environment = environment_of(home, keys, CLICKMILL_LISTEN="0.0.0.0")

    assert environment["AIRFLOW__API__HOST"] == environment["SPARK_LOCAL_IP"] == "0.0.0.0"
    assert rendered_spark_settings(environment)["spark.connect.grpc.binding.address"] == "127.0.0.1"
    assert environment["AIRFLOW__API__BASE_URL"] == "http://localhost:8081"


def test_address_to_listen_on_must_be_one(home: Home, keys: Secrets) -> None:
    with pytest.raises(ClickmillError, match=r"CLICKMILL_LISTEN='everywhere': expected an IP address") as error:
        environment_of(home, keys, CLICKMILL_LISTEN="everywhere")

    assert error.value.exit_code == 2


def test_connection_to_spark_has_the_port_the_token_and_the_only_host_that_takes_a_token(
    home: Home, keys: Secrets
) -> None:
    connection = json.loads(environment_of(home, keys)["AIRFLOW_CONN_SPARK_DEFAULT"])

    assert connection == {
        "conn_type": "spark_connect",
        "host": "localhost",
        "port": 15003,
        "password": keys.spark_token,
    }


def test_state_is_under_the_home_and_code_in_the_repository(home: Home, keys: Secrets) -> None:
    environment = environment_of(home, keys)

    assert environment["CLICKMILL_HOME"] == str(home.path)
    assert environment["AIRFLOW_HOME"] == str(home.path / "airflow")
    assert environment["AIRFLOW__CORE__DAGS_FOLDER"] == str(REPOSITORY / "dags")
    assert environment["PYTHONPATH"].split(os.pathsep)[0] == str(REPOSITORY)
    assert environment["TZ"] == "UTC"


def test_shell_can_change_what_is_a_matter_of_taste_and_not_what_clickmill_depends_on(
    home: Home, keys: Secrets
) -> None:
    environment = environment_of(
        home,
        keys,
        AIRFLOW__CORE__PARALLELISM="16",
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN="postgresql://db/airflow",
        AIRFLOW__API__HOST="0.0.0.0",
        AIRFLOW_HOME="/elsewhere",
        PYTHONPATH="/elsewhere",
    )

    assert environment["AIRFLOW__CORE__PARALLELISM"] == "16"
    assert environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] == "postgresql://db/airflow"
    assert environment["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert environment["AIRFLOW_HOME"] == str(home.airflow)
    assert environment["PYTHONPATH"].split(os.pathsep)[0] == str(REPOSITORY)


@pytest.mark.slow
def test_what_tasks_import_slowly_is_in_the_process_that_they_are_forked_from() -> None:
    slow = {"airflow", "deltalake", "filelock", "great_expectations", "numpy", "pandas", "pyarrow", "pygal", "pyspark"}
    code = f"""
import importlib, sys
for module in {PRELOADED}:
    importlib.import_module(module)
before = {{name.partition(".")[0] for name in sys.modules}}
for job in ("ingest_clicks", "aggregate_clicks", "validate_clicks", "publish_clicks"):
    importlib.import_module("spark_jobs." + job)
print(*before, "then", *{{name.partition(".")[0] for name in sys.modules}} - before)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    before, _, then = done.stdout.partition(" then ")
    assert not slow & set(then.split()), "name them in PRELOADED"
    assert not {"dags", "expectations", "include", "spark_jobs"} & set(before.split()), "changes would not hold"


@pytest.mark.slow
def test_what_the_dag_imports_of_airflow_is_there_too_and_no_garbage_is_looked_for_in_it() -> None:
    code = f"""
import gc, importlib, sys
for module in {PRELOADED}:
    importlib.import_module(module)
before, kept, looked_at = set(sys.modules), gc.get_freeze_count(), len(gc.get_objects())
importlib.import_module("dags.clicks_hourly")
ours = ("dags", "include")
print(kept, looked_at, len([name for name in set(sys.modules) - before if name.partition(".")[0] not in ours]))
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW__")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True
    )
    kept, looked_at, others = map(int, done.stdout.splitlines()[-1].split())
    assert others <= 5, "name them in PRELOADED"
    assert kept > 100_000
    assert looked_at < kept / 10


def test_shell_that_talks_to_another_spark_does_not_lead_the_server_there(home: Home, keys: Secrets) -> None:
    environment = environment_of(
        home, keys, SPARK_REMOTE="sc://elsewhere", SPARK_CONNECT_MODE_ENABLED="1", PYSPARK_SUBMIT_ARGS="--x"
    )

    assert not {"SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_SUBMIT_ARGS"} & set(environment)


def test_proxy_of_the_shell_is_not_used_for_this_machine(home: Home, keys: Secrets) -> None:
    environment = environment_of(home, keys, NO_PROXY="intranet", HTTPS_PROXY="http://proxy:3128")

    assert environment["NO_PROXY"] == "intranet,localhost,127.0.0.1,::1"
    assert environment["no_proxy"] == "localhost,127.0.0.1,::1"
    assert environment["HTTPS_PROXY"] == "http://proxy:3128"


# --- supervisord ----------------------------------------------------------------------------------


@pytest.fixture
def programs() -> dict[str, configparser.SectionProxy]:
    parser = configparser.RawConfigParser(inline_comment_prefixes=(" ;",))
    parser.read(REPOSITORY / "ops" / "services" / "supervisord.conf")
    return {name.removeprefix("program:"): parser[name] for name in parser if name.startswith("program:")}


def test_every_service_is_configured_and_ended_with_its_whole_group(
    programs: dict[str, configparser.SectionProxy],
) -> None:
    assert set(programs) == {SPARK, *AIRFLOW, TRIGGERER, BROKER, RECEIVER}
    for name, program in programs.items():
        assert program["stopasgroup"] == program["killasgroup"] == "true", name
        assert program["command"].startswith("/bin/sh -c 'exec "), f"{name}: no shell may stand between"
        assert program["stdout_logfile_maxbytes"], name


def test_only_spark_starts_before_airflows_database_is_ready(
    programs: dict[str, configparser.SectionProxy],
) -> None:
    assert [name for name, program in programs.items() if program["autostart"] == "true"] == [SPARK]


def test_no_secret_is_in_a_settings_file_or_on_a_command_line(home: Home, keys: Secrets) -> None:
    secrets = [
        keys.spark_token,
        keys.visitor_key,
        keys.airflow_password,
        keys.airflow_jwt_secret,
        keys.airflow_fernet_key,
    ]
    text = "\n".join(f"{n} {v}" for n, v in rendered_spark_settings(environment_of(home, keys)).items())
    conf = (REPOSITORY / "ops" / "services" / "supervisord.conf").read_text()

    assert not [secret for secret in secrets if secret in text]
    assert set(re.findall(r"\$(\w+)", conf)) == {
        "SPARK_HOME",
        "CLICKMILL_HOME",
        "CLICKMILL_PYTHON",
        "CLICKMILL_REPOSITORY",
    }
    assert set(re.findall(r"%\(ENV_(\w+)\)s", conf)) == {"CLICKMILL_SUPERVISOR_SOCKET"}


def test_socket_is_in_the_home_while_its_path_is_short_enough() -> None:
    home = Home(Path("/h"))

    assert socket_path(home) == Path("/h/run/supervisor.sock")


def test_socket_of_a_long_home_is_in_a_private_folder_and_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.services.ports.tempfile.gettempdir", lambda: str(tmp_path))
    one, two = Home(tmp_path / ("x" * 100)), Home(tmp_path / ("y" * 100))

    assert socket_path(one).parent == tmp_path / f"clickmill-{os.getuid()}"
    assert socket_path(one).parent.stat().st_mode & 0o777 == 0o700
    assert socket_path(one) != socket_path(two)
    assert socket_path(one) == socket_path(one)


def test_length_of_a_socket_path_is_counted_in_bytes() -> None:
    characters = LONGEST_SOCKET_PATH - len("//run/supervisor.sock")

    assert socket_path(Home(Path("/" + "x" * characters))).name == "supervisor.sock"
    assert socket_path(Home(Path("/" + "ö" * characters))).name != "supervisor.sock"


# --- whom a stop ends -----------------------------------------------------------------------------


@pytest.fixture
def sleepers(home: Home) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """A process of this home that does not let itself be asked, one of another home, and a stranger."""
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    started = {}
    for name, mark in (
        ("ours", {MARK: str(home.path)}),
        ("other", {MARK: f"{home.path}2"}),
        ("stranger", {}),
    ):
        environment = {key: value for key, value in os.environ.items() if key != MARK} | mark
        started[name] = subprocess.Popen([sys.executable, "-c", stubborn], env=environment, stdout=subprocess.PIPE)
    for process in started.values():
        assert process.stdout is not None
        process.stdout.readline()
    yield started
    for process in started.values():
        process.kill()
        process.communicate()


def test_stop_ends_what_carries_the_homes_mark_and_nothing_else(
    home: Home, sleepers: dict[str, subprocess.Popen[bytes]]
) -> None:
    assert [process.pid for process in marked_processes(home)] == [sleepers["ours"].pid]

    end_marked(home, patience=0.3)

    assert sleepers["ours"].wait(timeout=5) == -9, "asked first, then killed"
    assert sleepers["other"].poll() is None
    assert sleepers["stranger"].poll() is None
    assert marked_processes(home) == []


def test_process_that_asks_does_not_end_itself(home: Home) -> None:
    code = (
        "from pathlib import Path; from ops.home import Home; from ops.services.supervisor import marked_processes;"
        f"print(marked_processes(Home(Path({str(home.path)!r}))))"
    )
    environment = os.environ | {MARK: str(home.path), "PYTHONPATH": str(REPOSITORY)}

    answer = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)

    assert answer.stdout.strip() == "[]", answer.stderr


def test_stop_where_nothing_runs_says_so_and_makes_nothing(tmp_path: Path) -> None:
    assert stop(tmp_path / "never") is False
    assert status(tmp_path / "never") == []
    assert not (tmp_path / "never").exists()


# --- health ---------------------------------------------------------------------------------------


def health(status: str, beat: datetime | None) -> dict[str, object]:
    return {
        "scheduler": {
            "status": status,
            "latest_scheduler_heartbeat": beat.isoformat() if beat else None,
        }
    }


def test_heartbeat_of_an_earlier_start_does_not_count() -> None:
    since = datetime(2026, 3, 1, 5, tzinfo=UTC)
    second = timedelta(seconds=1)

    assert unhealthy(health("healthy", since + second), ["scheduler"], since) == []
    assert unhealthy(health("healthy", since - second), ["scheduler"], since) == ["scheduler"]
    assert unhealthy(health("unhealthy", since + second), ["scheduler"], since) == ["scheduler"]
    assert unhealthy(health("healthy", None), ["scheduler"], since) == ["scheduler"]
    assert unhealthy({}, ["scheduler"], since) == ["scheduler"]


@pytest.mark.parametrize(("database", "migrations"), [("", 0), ("postgresql+psycopg2://airflow@/airflow", 1)])
def test_only_the_homes_own_database_is_trusted_to_be_as_it_was_left(
    home: Home, monkeypatch: pytest.MonkeyPatch, database: str, migrations: int
) -> None:
    environment = {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database} if database else {}
    (home.airflow / "airflow.db").touch()
    (home.airflow / "migrated").write_text(migration_stamp(home, environment))
    started: list[list[str]] = []
    monkeypatch.setattr("ops.services.migration.subprocess.Popen", lambda command, **options: started.append(command))

    begin_migration(home, environment)

    assert [command[1:] for command in started] == [["-m", "airflow", "db", "migrate"]] * migrations


def test_failure_shows_the_service_the_end_of_its_log_and_where_it_is(home: Home) -> None:
    (home.logs / "spark-connect.out").write_text("".join(f"line {n}\n" for n in range(100)))

    message = str(failure(home, SPARK, "ended while starting"))

    assert message.splitlines()[0] == f"--- {home.logs}/spark-connect.out"
    assert "line 99" in message
    assert "line 50" not in message
    last = message.splitlines()[-1]
    assert last.startswith("spark-connect ended while starting; its last log lines are above")
    assert str(home.logs) in last


def test_last_lines_of_a_long_or_absent_file(tmp_path: Path) -> None:
    long = tmp_path / "long"
    long.write_text("".join(f"{n}\n" for n in range(200_000)))

    assert last_lines(long, 2) == ["199998", "199999"]
    assert last_lines(tmp_path / "absent") == []


@pytest.mark.parametrize("value", ["soon", "0", "-5", "nan", "inf"])
def test_start_timeout_must_be_seconds(value: str) -> None:
    with pytest.raises(ClickmillError, match=r"CLICKMILL_START_TIMEOUT=.*: expected seconds"):
        start_timeout({"CLICKMILL_START_TIMEOUT": value})


@pytest.mark.parametrize(
    ("spark", "scheduler", "missing"),
    [
        (True, "healthy", {}),
        (False, "healthy", {SPARK: "did not answer on port 15003"}),
        (True, "unhealthy", {"airflow-scheduler": "sent no heartbeat"}),
        (True, "", {"airflow-api-server": "did not answer on port 8081"}),
    ],
)
def test_health_names_each_service_that_does_not_do_its_work(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    spark: bool, scheduler: str, missing: dict[str, str],
) -> None:  # fmt: skip
    beat = datetime.now(UTC).isoformat()
    report = {
        part: {"status": status, f"latest_{part}_heartbeat": beat}
        for part, status in {"scheduler": scheduler, "dag_processor": "healthy", "triggerer": "healthy"}.items()
    }
    monkeypatch.setattr("ops.services.health.running_ports", lambda place: PORTS)
    monkeypatch.setattr("ops.services.health.is_answered", lambda port: spark)
    monkeypatch.setattr("ops.services.health.airflow_health", lambda port: report if scheduler else {})
    monkeypatch.setenv("CLICKMILL_TRIGGERER", "1")

    assert main(["health"]) == bool(missing)

    assert capsys.readouterr().out.splitlines() == [f"{name} {what}" for name, what in missing.items()]


def test_health_of_services_that_do_not_run_is_an_error(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", "--home", str(home.path)]) == 1

    assert "no services run for" in capsys.readouterr().err


# --- in the foreground ----------------------------------------------------------------------------


class FakeSupervisor:
    """A supervisord whose services are all in one state; none answers when there is no state."""

    def __init__(self, state: str | None) -> None:
        self._state = state
        self.looks = 0

    def __call__(self, home: Home) -> FakeSupervisor:
        return self

    def states(self) -> list[ServiceState]:
        self.looks += 1
        assert self.looks < 100, "still watching"
        if self._state is None:
            raise ConnectionRefusedError
        return [ServiceState(SPARK, self._state, 1)]


@pytest.fixture
def ended(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """Services in the foreground that need not be started; the homes whose services were ended."""
    ended: list[Path] = []
    running = Services(home.path, 8081, 15003, 4041, "admin", "pass-word", "to-ken")
    monkeypatch.setattr("ops.services.foreground.start", lambda place: running)
    monkeypatch.setattr("ops.services.foreground.stop", ended.append)
    monkeypatch.setattr("ops.services.foreground.WATCH_SECONDS", 0.01)
    handler = signal.getsignal(signal.SIGTERM)
    yield ended
    signal.signal(signal.SIGTERM, handler)


def test_run_stays_until_it_is_told_to_end_and_then_ends_the_services(
    home: Home, ended: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Told(FakeSupervisor):
        def states(self) -> list[ServiceState]:
            if self.looks == 2:
                os.kill(os.getpid(), signal.SIGTERM)
            return super().states()

    supervisor = Told("RUNNING")
    monkeypatch.setattr("ops.services.foreground.Supervisor", supervisor)

    assert main(["run"]) == 0

    assert supervisor.looks >= 2
    assert ended == [home.path]
    printed = capsys.readouterr()
    assert "http://localhost:8081" in printed.out
    assert "pass-word" not in printed.out + printed.err


@pytest.mark.parametrize(
    ("state", "message"), [("FATAL", "spark-connect ended again and again"), (None, "supervisord has ended")]
)
def test_run_fails_when_the_services_do_not_stay_up(
    home: Home,
    ended: list[Path],
    state: str | None,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("ops.services.foreground.Supervisor", FakeSupervisor(state))

    assert main(["run"]) == 1

    assert message in capsys.readouterr().err
    assert ended == [home.path]


def test_start_timeout_is_taken_from_the_shell() -> None:
    assert start_timeout({"CLICKMILL_START_TIMEOUT": "7.5"}) == 7.5
    assert start_timeout({}) == 180


# --- what the caller gets -------------------------------------------------------------------------


def test_addresses_follow_the_ports_and_secrets_do_not_show_when_printed(home: Home) -> None:
    running = Services(home.path, 8081, 15003, 4041, "admin", "pass-word", "to-ken")

    assert running.airflow_url == "http://localhost:8081"
    assert running.spark_remote == "sc://localhost:15003/;token=to-ken"
    assert running.environment()["SPARK_REMOTE"] == running.spark_remote
    assert running.environment()["CLICKMILL_HOME"] == str(home.path)
    assert "to-ken" not in repr(running)
    assert "pass-word" not in repr(running)


def test_asking_for_services_that_do_not_run_is_one_line(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "--home", str(home.path)]) == 1

    assert capsys.readouterr().err == (
        f"services: no services run for {home.path}; run: make run, or .venv/bin/python -m ops.services start\n"
    )


@pytest.mark.parametrize("character", list("%?#,$\"'\\{}\n"))
def test_home_that_airflow_or_spark_could_not_take_is_refused_before_anything_starts(
    tmp_path: Path, character: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def go_no_further(environment: dict[str, str]) -> Path:
        raise AssertionError(f"looked for Java in {len(environment)} variables")

    monkeypatch.setattr("ops.services.start.find_java", go_no_further)

    assert main(["start", "--home", str(tmp_path / f"a{character}b")]) == 2

    assert "set CLICKMILL_HOME to a folder without" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []

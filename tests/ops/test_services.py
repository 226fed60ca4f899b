"""Services without starting any: their health, in the foreground, and what the caller gets."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from clickmill.app import run
from include.command import exit_with
from include.errors import ClickmillError, UsageError
from ops.home import Home
from ops.services.health import unhealthy
from ops.services.logs import failure, last_lines
from ops.services.migration import begin_migration, migration_stamp
from ops.services.programs import SPARK
from ops.services.running import Services
from ops.services.start import start_timeout
from ops.services.supervisor import ServiceState
from tests.ops.service_ports import PORTS

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

    assert [command[1:] for command in started] == [["-m", "ops.airflow_database"]] * migrations


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

    assert run(["health"]) == bool(missing)

    assert capsys.readouterr().out.splitlines() == [f"{name} {reason}" for name, reason in missing.items()]


def test_health_of_services_that_do_not_run_is_an_error(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLICKMILL_HOME", str(home.path))
    with pytest.raises(ClickmillError, match="no services run for"):
        run(["health"])


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


def test_run_stays_until_it_is_asked_to_end_and_then_ends_the_services(
    home: Home, ended: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Told(FakeSupervisor):
        def states(self) -> list[ServiceState]:
            if self.looks == 2:
                os.kill(os.getpid(), signal.SIGTERM)
            return super().states()

    supervisor = Told("RUNNING")
    monkeypatch.setattr("ops.services.foreground.Supervisor", supervisor)

    assert not run(["serve"])

    assert supervisor.looks >= 2
    assert ended == [home.path]
    printed = capsys.readouterr()
    assert "http://localhost:8081" in printed.out
    assert "pass-word" not in printed.out + printed.err


@pytest.mark.parametrize(
    ("state", "message"), [("FATAL", "spark-connect ended again and again"), (None, "supervisord has ended")]
)
def test_run_fails_when_the_services_do_not_stay_up(
    home: Home, ended: list[Path], state: str | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.services.foreground.Supervisor", FakeSupervisor(state))

    with pytest.raises(ClickmillError, match=message):
        run(["serve"])

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


def test_asking_for_services_that_do_not_run_is_one_line(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLICKMILL_HOME", str(home.path))
    with pytest.raises(SystemExit) as ended:
        exit_with(lambda: run(["env"]))

    assert ended.value.code == 1
    assert capsys.readouterr().err == (f"failed: no services run for {home.path}; run: make run, or clickmill start\n")


@pytest.mark.parametrize("character", list("%?#,$\"'\\{}\n"))
def test_home_that_airflow_or_spark_could_not_take_is_refused_before_anything_starts(
    tmp_path: Path, character: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def go_no_further(environment: dict[str, str]) -> Path:
        raise AssertionError(f"looked for Java in {len(environment)} variables")

    monkeypatch.setattr("ops.services.start.find_java", go_no_further)
    monkeypatch.setenv("CLICKMILL_HOME", str(tmp_path / f"a{character}b"))

    with pytest.raises(UsageError, match="set CLICKMILL_HOME to a folder without"):
        run(["start"])

    assert list(tmp_path.iterdir()) == []

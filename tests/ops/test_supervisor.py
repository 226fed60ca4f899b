"""Supervisord without starting any: its programs and its socket, and whom a stop would end."""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ops.bootstrap import REPOSITORY
from ops.home import Home
from ops.services.programs import AIRFLOW, BROKER, METRICS, RECEIVER, SPARK, TRIGGERER
from ops.services.stop import status, stop
from ops.services.supervisor import LONGEST_SOCKET_PATH, MARK, end_marked, marked_processes, socket_path

# --- supervisord ----------------------------------------------------------------------------------


@pytest.fixture
def programs() -> dict[str, configparser.SectionProxy]:
    parser = configparser.RawConfigParser(inline_comment_prefixes=(" ;",))
    parser.read(REPOSITORY / "ops" / "services" / "supervisord.conf")
    return {name.removeprefix("program:"): parser[name] for name in parser if name.startswith("program:")}


def test_every_service_is_configured_and_ended_with_its_whole_group(
    programs: dict[str, configparser.SectionProxy],
) -> None:
    assert set(programs) == {SPARK, *AIRFLOW, TRIGGERER, BROKER, RECEIVER, METRICS}
    for name, program in programs.items():
        assert program["stopasgroup"] == program["killasgroup"] == "true", name
        assert program["command"].startswith("/bin/sh -c 'exec "), f"{name}: no shell may stand between"
        assert program["stdout_logfile_maxbytes"], name


def test_only_spark_starts_before_airflows_database_is_ready(
    programs: dict[str, configparser.SectionProxy],
) -> None:
    assert [name for name, program in programs.items() if program["autostart"] == "true"] == [SPARK]


def test_socket_is_in_the_home_while_its_path_is_short_enough() -> None:
    home = Home(Path("/h"))

    assert socket_path(home) == Path("/h/run/supervisor.sock")


def test_socket_of_a_long_home_is_in_a_private_folder_and_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.services.ports.tempfile.gettempdir", lambda: str(tmp_path))
    first, second = Home(tmp_path / ("x" * 100)), Home(tmp_path / ("y" * 100))

    assert socket_path(first).parent == tmp_path / f"clickmill-{os.getuid()}"
    assert socket_path(first).parent.stat().st_mode & 0o777 == 0o700
    assert socket_path(first) != socket_path(second)
    assert socket_path(first) == socket_path(first)


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

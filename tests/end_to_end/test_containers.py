"""docker-compose.yml for real: the image built, an hour through Airflow, the containers replaced.

It takes minutes and downloads 1 GB, and not every machine has a container engine, CI's neither. So it runs only
when it is asked for: CLICKMILL_TEST_COMPOSE is the command, such as "docker compose". What the file says is
checked everywhere, by tests/ops/test_docker_compose.py.
"""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator

import psutil
import pytest

from ops.bootstrap import REPOSITORY
from tests.support.waiting import wait_until

COMMAND = shlex.split(os.environ.get("CLICKMILL_TEST_COMPOSE", ""))
PATIENCE = 900.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not COMMAND, reason='set CLICKMILL_TEST_COMPOSE, such as to "docker compose", to run it'),
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def ports() -> dict[str, str]:
    return {"CLICKMILL_AIRFLOW_PORT": str(free_port()), "CLICKMILL_SPARK_UI_PORT": str(free_port())}


Compose = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def compose(ports: dict[str, str]) -> Iterator[Compose]:
    """The compose command for a project of its own, whose containers are up and well."""
    # The volume by name, whatever a developer's .env says.
    environment = os.environ | ports | {"CLICKMILL_STATE": "state"}

    def run(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        project = ("--project-name", f"clickmill-test-{os.getpid()}")
        answer = subprocess.run(
            [*COMMAND, *project, *arguments], cwd=REPOSITORY, env=environment, capture_output=True, text=True
        )
        assert answer.returncode == 0 or not check, f"{arguments}: {answer.stdout[-3000:]}{answer.stderr[-3000:]}"
        return answer

    try:
        run("up", "--detach", "--build")
        wait_until_well(run)
        yield run
    finally:
        run("down", "--volumes", "--rmi", "local")


def wait_until_well(run: Compose) -> None:
    def is_well() -> bool:
        return run("exec", "-T", "clickmill", "python", "-m", "ops.services", "health", check=False).returncode == 0

    try:
        wait_until(is_well, "the services are well", PATIENCE)
    except AssertionError:
        print(run("logs", "clickmill").stdout[-3000:])
        raise


def published(run: Compose) -> str:
    """What was published, less the warnings: the current hour's scheduled run may add one at any time."""
    shown = run("exec", "-T", "clickmill", "python", "-m", "spark_jobs.show_results").stdout
    counts, passed, _ = shown.partition("PASSED")
    assert passed, shown
    return str(counts)


def test_hour_goes_through_airflow_and_outlives_the_containers(compose: Compose) -> None:
    shown = compose("exec", "-T", "clickmill", "python", "-m", "ops.run", "--hours", "1", "--clicks", "1000").stdout

    assert "1 hours of web done" in shown
    before = published(compose)
    assert "https://www.example.com/" in before
    compose("exec", "-T", "clickmill", "test", "-s", "/var/lib/clickmill/reports/report.html")
    compose("down")
    compose("up", "--detach")
    wait_until_well(compose)
    assert published(compose) == before
    done = compose(
        "exec", "-T", "postgres", "psql", "--username=airflow", "--tuples-only", "--no-align",
        "--command=SELECT DISTINCT state FROM dag_run WHERE run_type = 'backfill'",
    )  # fmt: skip
    assert done.stdout.split() == ["success"]


def test_only_loopback_listens_on_this_machine(compose: Compose, ports: dict[str, str]) -> None:
    listening = {
        (found.laddr.port, found.laddr.ip) for found in psutil.net_connections("inet") if found.status == "LISTEN"
    }
    airflow, spark_ui = (int(port) for port in ports.values())

    assert {found for found in listening if found[0] in (airflow, spark_ui)} == {
        (airflow, "127.0.0.1"),
        (spark_ui, "127.0.0.1"),
    }
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://localhost:{airflow}/api/v2/version", timeout=30) as answer:
        assert answer.status == 200

"""deploy/docker-compose.small.yml for real: an hour through Airflow, and the containers replaced."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.containers import Project, project

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def running() -> Iterator[Project]:
    # The volume by name.
    with project("deploy/docker-compose.small.yml", CLICKMILL_STATE="state") as containers:
        yield containers


def published(running: Project) -> str:
    """What was published, less the warnings: the current hour's scheduled run may add one at any time."""
    shown = running.inside("clickmill", "python", "-m", "clickmill", "results")
    counts, passed, _ = shown.partition("PASSED")
    assert passed, shown
    return counts


def test_hour_goes_through_airflow_and_outlives_the_containers(running: Project) -> None:
    shown = running.inside("clickmill", "clickmill", "run", "--hours", "1", "--clicks", "1000")

    assert "1 hours of web done" in shown
    before = published(running)
    assert "https://www.example.com/" in before
    running.inside("clickmill", "test", "-s", "/var/lib/clickmill/reports/report.html")
    running.run("down")
    running.up()
    running.wait_until_well()
    assert published(running) == before

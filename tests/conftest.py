"""Fixtures that tests share. Spark and Airflow start when the first test asks for them, and then once.

Where no test has asked for Airflow before, Spark starts without it.

While working on tests, ``CLICKMILL_TEST_SPARK_REMOTE`` names a running Spark Connect server (on this machine: it
reads and writes the tests' folders) to use in place of starting one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from include.settings import Settings
from tests.jobs.temporary_lake import TemporaryLake, make_settings
from tests.spark_server import SparkServer, UsedSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.scheduler import LoadFileScheduling

    from ops.services import Services

#: The services, once a test has asked for them.
SERVICES = pytest.StashKey["Services"]()

NOTIFICATIONS = """
[[held]]
notifier = "plugins.notifiers.webhook.WebhookNotifier"
connection = "held_webhook"
[held.payload]
hour = "{{ params.hour }}"
text = "{{ params.reasons | join('; ') }}"
page = "{{ task.generate_link_to_ui(task_instance=ti) }}"
"""


def pytest_configure() -> None:
    """Let Java be slower to compile anew, by its second compiler, what its first has compiled, unless told otherwise.

    A server of tests lives for minutes, of whose processor time compiling takes a quarter. These are five times Java's
    own thresholds: 8 % less of it (docs/benchmarks.md).
    """
    thresholds = {"Invocation": 25_000, "MinInvocation": 3_000, "Compile": 75_000, "BackEdge": 200_000}
    options = " ".join(f"-XX:Tier4{of}Threshold={number}" for of, number in thresholds.items())
    os.environ.setdefault("CLICKMILL_SPARK_JAVA_OPTIONS", options)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    """Deal the tests to several processes (pytest -n 2) by file, for they share what it sets up.

    All that run DAGs go to one process: one Airflow runs them.
    """
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return "tests/end_to_end" if file.startswith("tests/end_to_end/") else file

    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.fixture(scope="session")
def services(request: pytest.FixtureRequest) -> Iterator[Services]:
    """Real services of a home of their own; they tell the connection held_webhook of new holds."""
    from ops.services import start, stop

    # Not under tmp_path: its long name leaves no room for a socket's path.
    home = Path(tempfile.mkdtemp(prefix="cm-"))
    notifications = home / "notifications.toml"
    notifications.write_text(NOTIFICATIONS, encoding="utf-8")
    try:
        running = start(home, os.environ | {"CLICKMILL_NOTIFICATIONS": str(notifications)})
        request.config.stash[SERVICES] = running
        yield running
    finally:
        stop(home)
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def used_spark(request: pytest.FixtureRequest) -> Iterator[UsedSpark]:
    """The one given, or that of the services if they run, or one without Airflow beside it."""
    if given := os.environ.get("CLICKMILL_TEST_SPARK_REMOTE"):
        yield UsedSpark(given, None)
    elif running := request.config.stash.get(SERVICES, None):
        yield UsedSpark(running.spark_remote, running.home / "logs")
    else:
        with tempfile.TemporaryDirectory(prefix="cm-", ignore_cleanup_errors=True) as folder:
            server = SparkServer.in_folder(Path(folder))
            try:
                server.start()
                yield UsedSpark(server.remote, server.home.logs)
            finally:
                server.stop()


@pytest.fixture(scope="session")
def spark_remote(used_spark: UsedSpark) -> str:
    """Where Spark Connect answers, with its token."""
    return used_spark.remote


@pytest.fixture(scope="session")
def spark(spark_remote: str) -> Iterator[SparkSession]:
    """One session for all tests, configured as the jobs' own are."""
    # Before any function of pyspark is called: it decides there whether columns are a client's or the JVM's.
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    from pyspark.sql import SparkSession

    from spark_jobs.session import configure

    session = configure(SparkSession.builder.remote(spark_remote).getOrCreate())
    try:
        yield session
    finally:
        session.stop()
        os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A home of the test's own, with sources web (json) and access (combined)."""
    return make_settings(tmp_path / "home")


@pytest.fixture
def lake(spark: SparkSession, settings: Settings) -> TemporaryLake:
    """An empty lake of the test's own."""
    return TemporaryLake(spark, settings)


@pytest.fixture(scope="module")
def make_lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], TemporaryLake]:
    """Empty lakes that several tests of a module share."""

    def make(name: str) -> TemporaryLake:
        return TemporaryLake(spark, make_settings(tmp_path_factory.mktemp(name) / "home"))

    return make

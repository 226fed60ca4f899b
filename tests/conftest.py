"""Fixtures that tests share. Spark and Airflow start when the first test asks for them, once for all processes.

Spark starts without Airflow where no test of the run needs that.

While working on tests, ``CLICKMILL_TEST_SPARK_REMOTE`` names a running Spark Connect server (on this machine: it
reads and writes the tests' folders) to use in place of starting one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from include.settings import Settings
from ops.home import Home
from tests.support.s3_server import S3Server, s3_server
from tests.support.shared_services import SharedServices
from tests.support.spark_server import UsedSpark, open_session
from tests.support.temporary_lake import TemporaryLake, make_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.scheduler import LoadFileScheduling
    from xdist.workermanage import WorkerController

    from ops.services.running import Services

#: The services of this run, whether they have been started or not.
SHARED = pytest.StashKey[SharedServices]()
#: The services, once a test of this process has asked for them.
SERVICES = pytest.StashKey["Services"]()
_JAVA_OPTIONS = "CLICKMILL_SPARK_JAVA_OPTIONS"
#: Memory that is kept: a server of many lakes and sessions would collect it for a fifth of the time, to give a little
#: of it back.
_HEAP = "-XX:MinHeapFreeRatio=60 -XX:MaxHeapFreeRatio=90"
#: Java's first compiler alone, and room for all that it makes: by default it has a fifth of that.
_OF_A_SHORT_LIFE = f"-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m {_HEAP}"
#: So many tests use the one server that they share for long enough for Java's second compiler.
_MANY = 200
#: The tests that run DAGs.
END_TO_END = Path(__file__).parent / "end_to_end"
#: Fixtures of servers: who uses one of them, or the marker spark, needs more than a process of Python.
_SERVERS = {"used_spark", "services", "broker", "postgres", "s3", "server"}
#: Until when there is time for tests that need servers, in seconds since 1970: .ci/run must end.
_UNTIL = "CLICKMILL_TEST_UNTIL"
#: How the process that hands out the tests tells the others of the home of SHARED.
_HOME = "clickmill_home"


def pytest_configure(config: pytest.Config) -> None:
    """Have one home of services; and have Spark servers use Java's first compiler alone, unless told otherwise.

    A server of tests lives for minutes: a seventh less processor time (docs/performance.md).
    """
    told: dict[str, str] = getattr(config, "workerinput", {})
    config.stash[SHARED] = SharedServices(Home(Path(told[_HOME]))) if told else SharedServices.none_yet()
    os.environ.setdefault(_JAVA_OPTIONS, _OF_A_SHORT_LIFE)
    # The data of whoever runs the tests is none of theirs.
    for name in ("CLICKMILL_DATA", "CLICKMILL_LOCKS"):
        os.environ.pop(name, None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs servers: ``make unit`` leaves that out, ``make test`` all of it but the paths.

    Tests of DAGs come first, all of which one process runs, then files with slow tests, or that kill, then the others
    that need servers, and at the end many short ones: what begins last runs alone, while the other process idles.
    """
    for item in items:
        if _SERVERS.intersection(getattr(item, "fixturenames", ())) or item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.servers)
    slow = {item.path for item in items if item.get_closest_marker("slow") or item.get_closest_marker("faults")}
    served = {item.path for item in items if item.get_closest_marker("servers")}
    items.sort(key=lambda item: (END_TO_END not in item.path.parents, item.path not in slow, item.path not in served))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out what needs servers once there is no time for it."""
    until = os.environ.get(_UNTIL)
    if until and time.time() > float(until) and item.get_closest_marker("servers"):
        pytest.skip(f"NOT RUN: {_UNTIL} is over")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[None]:
    """Refuse a server that a test asks for when it runs already: nobody could have left that test out."""
    if fixturedef.argname in _SERVERS and not request._pyfuncitem.get_closest_marker("servers"):
        pytest.fail(f"{request._pyfuncitem.nodeid} starts {fixturedef.argname}: mark it servers")
    return (yield)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Tell a process of tests (pytest -n 2) of the home of all."""
    node.workerinput[_HOME] = str(node.config.stash[SHARED].home.path)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the services, when all processes of tests have ended."""
    if not hasattr(config, "workerinput"):
        config.stash[SHARED].end()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    """Give the tests to several processes (pytest -n 2) by file, because a file's tests share what it sets up.

    All that run DAGs go to one process: one Airflow runs them.
    """
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return END_TO_END.name if f"/{END_TO_END.name}/" in file else file

    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.fixture(scope="session", autouse=True)
def no_flushing() -> Iterator[None]:
    """Files are written without waiting for the disk: no test cuts the power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session")
def services(request: pytest.FixtureRequest) -> Services:
    """Real services; they tell the connection held_webhook of new holds."""
    with _options_of_the_shared_server(request):
        running = request.config.stash[SHARED].start()
    request.config.stash[SERVICES] = running
    return running


@pytest.fixture(scope="session")
def used_spark(request: pytest.FixtureRequest) -> UsedSpark:
    """The one given, or that of the services, or one without Airflow beside it where no test needs that."""
    if remote := os.environ.get("CLICKMILL_TEST_SPARK_REMOTE"):
        return UsedSpark(remote, None)
    shared = request.config.stash[SHARED]
    # Every process knows all tests of the run.
    with_airflow = any("services" in getattr(item, "fixturenames", ()) for item in request.session.items)
    with _options_of_the_shared_server(request):
        return UsedSpark(shared.spark_remote(with_airflow=with_airflow), shared.home.logs)


@contextmanager
def _options_of_the_shared_server(request: pytest.FixtureRequest) -> Iterator[None]:
    """Other options of Java than for servers of a few tests, if there are many and nobody has said otherwise."""
    with pytest.MonkeyPatch.context() as environment:
        users = sum(item.get_closest_marker("servers") is not None for item in request.session.items)
        if users > _MANY and os.environ[_JAVA_OPTIONS] == _OF_A_SHORT_LIFE:
            environment.setenv(_JAVA_OPTIONS, _HEAP)
        yield


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """An S3 server, which this process finds by its environment."""
    with s3_server() as server, pytest.MonkeyPatch.context() as environment:
        for name, value in server.variables.items():
            environment.setenv(name, value)
        yield server


@pytest.fixture(scope="session")
def spark_remote(used_spark: UsedSpark) -> str:
    """Where Spark Connect answers, with its token."""
    return used_spark.remote


@pytest.fixture(scope="session")
def spark(spark_remote: str) -> Iterator[SparkSession]:
    """One session for all tests of this process."""
    with open_session(spark_remote) as session:
        yield session


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

"""What a real Spark refuses for its size, each provoked: one line that says what was too large and what answers it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from pyspark.errors import PySparkException

from include.errors import TooLargeError, in_one_line
from tests.support.spark_cluster import SparkCluster, spark_cluster
from tests.support.spark_server import SparkServer, open_session, started
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.servers]

_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    with spark_cluster(1, {}) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def server(cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkServer]:
    """One whose executor, in a process of its own, has little memory, and which takes small results only."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("CLICKMILL_SPARK_MASTER", cluster.master)
        environment.setenv("CLICKMILL_SPARK_EXECUTOR_MEMORY", "600m")
        server = SparkServer.in_folder(tmp_path_factory.mktemp("small"))
        server.more = "\nspark.driver.maxResultSize 1m\nspark.task.maxFailures 1\n"
        with started(server):
            yield server


def line_of(error: Exception) -> str:
    line = in_one_line(error)
    assert type(line) is TooLargeError, f"{line!r} of {str(error)[:2000]}"
    assert "\n" not in str(line)
    assert len(str(line)) < 600
    return str(line)


def test_results_that_are_too_large_to_be_given_back(server: SparkServer) -> None:
    with open_session(server.remote) as spark, pytest.raises(PySparkException) as raised:
        spark.range(1_000_000).toArrow()
    assert "spark.driver.maxResultSize (1024.0 KiB)" in line_of(raised.value)


def test_a_task_that_has_too_much_at_once(server: SparkServer) -> None:
    # At once: a heap that fills up slowly is collected again and again.
    with open_session(server.remote) as spark, pytest.raises(PySparkException) as raised:
        spark.range(1).selectExpr("size(array_repeat(id, 200000000))").collect()
    assert "CLICKMILL_SPARK_EXECUTOR_MEMORY" in line_of(raised.value)


def test_a_row_that_is_too_large(server: SparkServer) -> None:
    with open_session(server.remote) as spark, pytest.raises(PySparkException) as raised:
        spark.range(1).selectExpr("size(array_repeat(id, 2147483640))").collect()
    assert "row" in line_of(raised.value)


def _executors(cluster: SparkCluster) -> list[psutil.Process]:
    """Those that run: one that a test before has broken can still be a zombie, which has no command line."""
    (worker,) = cluster.workers
    running = []
    for child in psutil.Process(worker.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if _EXECUTOR in child.cmdline():
                running.append(child)
    return running


def test_an_executor_that_is_killed(server: SparkServer, cluster: SparkCluster, tmp_path: Path) -> None:
    begun = tmp_path / "begun"

    def go_on(batches: Iterator[object]) -> Iterator[object]:
        import time

        begun.touch()
        time.sleep(600)
        yield from batches

    with open_session(server.remote) as spark, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(spark.range(1).mapInArrow(go_on, "id BIGINT").collect)  # type: ignore[arg-type]
        try:
            wait_until(begun.exists, "the executor works", 120)
            for executor in _executors(cluster):
                with suppress(psutil.NoSuchProcess):
                    executor.kill()
            with pytest.raises(PySparkException) as raised:
                asked.result(120)
        finally:
            # Else the pool would wait for it.
            spark.interruptAll()
    line = line_of(raised.value)
    assert "executor" in line
    assert "memory" in line


def test_a_python_worker_that_is_killed(server: SparkServer) -> None:
    def kill(batches: Iterator[object]) -> Iterator[object]:
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)
        yield from batches

    with open_session(server.remote) as spark, pytest.raises(PySparkException) as raised:
        spark.range(1).mapInArrow(kill, "id BIGINT").collect()  # type: ignore[arg-type]
    assert "Python worker" in line_of(raised.value)

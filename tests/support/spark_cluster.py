"""A standalone Spark cluster of the tests' own: a master, and workers of one core each, as on machines of their own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import psutil

from ops.services.environment import PYTHONPATH, find_spark_home
from ops.setup.prerequisites import find_java
from tests.support.ports import claimed_port
from tests.support.waiting import wait_until

_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"


@dataclass
class SparkCluster:
    """A running master, and workers that are started and killed; ``variables`` are what executors need for S3."""

    folder: Path
    variables: Mapping[str, str]
    port: int = field(default_factory=lambda: claimed_port(17077, "Spark's master"))
    ui_port: int = field(default_factory=lambda: claimed_port(18080, "Spark's master's UI"))
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _master: subprocess.Popen[bytes] | None = None
    _started: int = 0

    @property
    def master(self) -> str:
        """CLICKMILL_SPARK_MASTER of a server that uses it."""
        return f"spark://127.0.0.1:{self.port}"

    def start(self, workers: int) -> None:
        """Start the master, and so many workers."""
        ports = ["--host", "127.0.0.1", "--port", str(self.port), "--webui-port", str(self.ui_port)]
        self._master = self._run(_MASTER, *ports)
        wait_until(lambda: self._alive() is not None, "Spark's master answers", 60)
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> None:
        """Start a worker, and wait until the master knows it."""
        self._started = number = self._started + 1
        ports = [claimed_port(usual + number, f"Spark's worker {number}") for usual in (17090, 18090)]
        where = ["--host", "127.0.0.1", "--port", str(ports[0]), "--webui-port", str(ports[1])]
        size = ["--cores", "1", "--memory", "2g", "--work-dir", str(self.folder / f"worker{number}")]
        self.workers.append(self._run(_WORKER, *where, *size, self.master))
        wait_until(lambda: ports[0] in (self._alive() or ()), f"worker {number} is known", 60)

    def replace_worker(self) -> None:
        """End the oldest worker and what it runs by SIGKILL, as when its machine is gone; then start another."""
        _kill(self.workers.pop(0))
        self.add_worker()

    def end(self) -> None:
        """End all that runs."""
        for process in [*self.workers, self._master]:
            if process is not None:
                _kill(process)

    def _alive(self) -> set[int] | None:
        """The ports of the workers that the master knows; None if it does not answer."""
        try:
            answer = httpx.get(f"http://127.0.0.1:{self.ui_port}/json/", timeout=5).json()
        except (httpx.HTTPError, ValueError):
            return None
        return {worker["port"] for worker in answer["workers"] if worker["state"] == "ALIVE"}

    def _run(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        environment = os.environ | self.variables | {
            "JAVA_HOME": str(find_java().resolve().parent.parent), "SPARK_HOME": str(find_spark_home()),
            "SPARK_LOCAL_DIRS": str(self.folder / "local"), "PYTHONPATH": PYTHONPATH, "SPARK_NO_DAEMONIZE": "1",
        }  # fmt: skip
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [find_spark_home() / "bin" / "spark-class", name, *arguments],
                env=environment, cwd=self.folder, stdout=log, stderr=log,
            )  # fmt: skip


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(psutil.NoSuchProcess):
        for child in [*psutil.Process(process.pid).children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                child.kill()
    process.kill()
    process.wait()


@contextmanager
def spark_cluster(workers: int, variables: Mapping[str, str]) -> Iterator[SparkCluster]:
    """A running cluster, gone at the end."""
    with TemporaryDirectory(prefix="cm-cluster-", ignore_cleanup_errors=True) as folder:
        cluster = SparkCluster(Path(folder), variables)
        try:
            cluster.start(workers)
            yield cluster
        finally:
            cluster.end()

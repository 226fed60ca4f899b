"""A Spark Connect server of the tests' own, without Airflow beside it: started, killed and started again."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import psutil
import pytest

from ops.bootstrap import REPOSITORY
from ops.home import Home, load_secrets
from ops.services.environment import find_spark_home, render_settings, service_environment
from ops.services.running import Ports
from ops.services.supervisor import marked_processes
from ops.setup.prerequisites import find_java
from tests.support.ports import claimed_port
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: What ops/connect_server.py prints once Spark answers.
STARTED = b"Spark Connect server started"


class UsedSpark(NamedTuple):
    """A server that tests use: SPARK_REMOTE, and the folder of its logs; none of one that was given."""

    remote: str
    logs: Path | None


@dataclass
class SparkServer:
    """One server, on the same port and with the same token whenever it is started.

    ``more`` are lines of settings beside those of ``config/spark-defaults.conf``.
    """

    home: Home
    ports: Ports
    more: str = ""
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @classmethod
    def in_folder(cls, folder: Path) -> SparkServer:
        """A server that is not yet started, of a home in this folder, on free ports."""
        return cls.of(Home(folder.resolve()))

    @classmethod
    def of(cls, home: Home) -> SparkServer:
        """A server that is not yet started, on free ports."""
        home.make()
        return cls(home, Ports(0, claimed_port(16002, "Spark Connect"), claimed_port(5040, "Spark's UI")))

    @property
    def remote(self) -> str:
        """SPARK_REMOTE for its clients; holds the token."""
        return f"sc://localhost:{self.ports.spark}/;token={load_secrets(self.home).spark_token}"

    @property
    def runs(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it as supervisord does, and wait until it says that it has."""
        environment = service_environment(self.home, self.ports, load_secrets(self.home), find_java(), os.environ)
        template = REPOSITORY / "config" / "spark-defaults.conf"
        settings = self.home.run / template.name
        rendered = render_settings(template.read_text(encoding="utf-8"), environment, template.name)
        settings.write_text(rendered + self.more)
        shutil.rmtree(self.home.run / "spark", ignore_errors=True)
        (self.home.run / "spark").mkdir()
        command = [find_spark_home() / "bin" / "spark-submit", "--properties-file", settings]
        with self.log.open("ab") as log:
            printed = log.tell()
            self._process = subprocess.Popen(
                [*command, REPOSITORY / "ops" / "connect_server.py"],
                env=environment, cwd=self.home.run, stdout=log, stderr=log,
            )  # fmt: skip
        wait_until(lambda: self._says_that_it_started(printed), "the Spark server starts", 180)

    def kill(self) -> None:
        """End the JVM by SIGKILL, and only it: what it has started learns of that as it may."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=60)
            self._process = None

    def stop(self) -> None:
        """End it, and whatever it has started."""
        self.kill()
        for process in marked_processes(self.home):
            with suppress(psutil.Error):
                process.kill()

    @property
    def log(self) -> Path:
        """What it prints."""
        return self.home.logs / "spark-connect.out"

    def _says_that_it_started(self, printed: int) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log.read_text(encoding="utf-8")[-2000:]
        # That its port answers is not enough: what a killed server was about to start may hold the port a while longer.
        with self.log.open("rb") as log:
            log.seek(printed)
            return STARTED in log.read()


@contextmanager
def open_session(remote: str) -> Iterator[SparkSession]:
    """A session of the server there, configured as the jobs' own are."""
    with pytest.MonkeyPatch.context() as environment:
        # Before any function of pyspark is called: it decides there whether columns are a client's or the JVM's.
        environment.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
        from pyspark.sql import SparkSession

        from spark_jobs.engine.session import configure

        session = configure(SparkSession.builder.remote(remote).create())
        try:
            yield session
        finally:
            session.stop()


@contextmanager
def started(server: SparkServer) -> Iterator[SparkServer]:
    """The server, running until the end."""
    try:
        server.start()
        yield server
    finally:
        server.stop()


@contextmanager
def own_server() -> Iterator[SparkServer]:
    """A server that nobody else uses, for as long as it is needed."""
    with tempfile.TemporaryDirectory(prefix="cm-", ignore_cleanup_errors=True) as folder:
        with started(SparkServer.in_folder(Path(folder))) as server:
            yield server

"""A job whose Spark Connect server is killed, stopped or started again: what it says, and when it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from include.home import REPOSITORY
from ops.home import Home
from tests.support.spark_server import SparkServer, own_server
from tests.support.waiting import wait_until

#: Uses its session, says so, and goes on by the word that it is given: with a query without end, or with its end.
JOB = """
import sys
from include.command import exit_with
from include.errors import ClickmillError
from include.settings import Settings
from pyspark.errors import PySparkException
from spark_jobs.engine.session import spark_session

def main():
    with spark_session(Settings.from_environment()) as spark:
        spark.range(3).count()
        print("begun", flush=True)
        if sys.stdin.readline() == "query\\n":
            try:
                for _ in spark.range(1 << 60).selectExpr("hash(id)").toLocalIterator():
                    pass
            except PySparkException as error:
                raise ClickmillError("the files of web cannot be read") from error

exit_with(main)
"""
GONE = "failed: the Spark server was ended or started again meanwhile, and with it this job's session; run it again"


class Job:
    """One such job, of a home; what it says is in a file."""

    def __init__(self, folder: Path, remote: str, home: Path, word: str) -> None:
        self.error_file = folder / f"{word}-{home.name}"
        with self.error_file.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", JOB],
                env=os.environ | {"SPARK_REMOTE": remote, "CLICKMILL_HOME": str(home)},
                cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
            )  # fmt: skip
        self.word = word

    def begin(self) -> None:
        """Wait until it has a session; let a query begin."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "begun\n", self.error_file.read_text()
        if self.word == "query":
            self.go_on()
            time.sleep(2)

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{self.word}\n")
        self.process.stdin.flush()

    def lines(self) -> list[str]:
        return self.error_file.read_text().splitlines()


@pytest.fixture(scope="module")
def server() -> Iterator[SparkServer]:
    with own_server() as server:
        yield server


@contextmanager
def jobs(folder: Path, server: SparkServer, wanted: Mapping[str, Path]) -> Iterator[list[Job]]:
    started = [Job(folder, server.remote, home, word) for word, home in wanted.items()]
    try:
        for job in started:
            job.begin()
        yield started
    finally:
        for job in started:
            job.process.kill()
            job.process.communicate()


def test_a_job_whose_server_does_not_answer_its_good_bye_ends(server: SparkServer, tmp_path: Path) -> None:
    with jobs(tmp_path, server, {"end": tmp_path}) as (job,):
        assert server._process is not None
        server._process.send_signal(signal.SIGSTOP)
        try:
            job.go_on()
            assert job.process.wait(30) == 0
        finally:
            server._process.send_signal(signal.SIGCONT)


def test_a_job_waits_for_a_supervised_server_to_come_back_and_blames_its_restart(
    server: SparkServer, tmp_path: Path
) -> None:
    home = Home(tmp_path / "home")
    home.make()
    home.service_file.write_text("{}")
    with jobs(tmp_path, server, {"query": home.path}) as (job,):
        server.kill()
        wait_until(lambda: any("does not answer; asked again for 60 s" in line for line in job.lines()), "says so", 5)
        server.start()
        assert job.process.wait(20) == 1
        assert len(job.lines()) == 2, job.lines()
        assert job.lines()[1].startswith(GONE)


def test_jobs_of_a_server_that_nobody_starts_again_end_within_seconds(server: SparkServer, tmp_path: Path) -> None:
    with jobs(tmp_path, server, {"query": tmp_path / "one", "end": tmp_path / "other"}) as (asking, done):
        server.kill()
        done.go_on()
        assert done.process.wait(15) == 0, "its work was done"
        assert done.lines() == []
        assert asking.process.wait(25) == 1
        assert [line.partition(";")[0] for line in asking.lines()] == [
            f"the Spark server at localhost:{server.ports.spark} does not answer",
            GONE.partition(";")[0],
        ]

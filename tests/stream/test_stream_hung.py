"""A micro-batch that hangs in the Spark server: its query is started again, and each line is there once.

On a server that nobody else uses, because its Python workers are stopped.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from deltalake import DeltaTable

from include.tables import CLICKS
from ops.services.supervisor import marked_processes
from tests.stream.files_lake import FilesLake
from tests.support import own_spark
from tests.support.spark_server import SparkServer
from tests.support.temporary_lake import click, make_settings
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.stream.job import SourceStream

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HOUR, NOON = "2026-03-01T08", "2026-03-01T08:10:00Z"
#: Of the processes of Spark's server, the workers that its tasks share, and the one of a query.
TASKS, QUERY = "pyspark.daemon", "foreach_batch_worker"


server, spark = own_spark.server, own_spark.spark


@pytest.fixture
def landed(tmp_path: Path, spark: SparkSession) -> FilesLake:
    return FilesLake(spark, make_settings(tmp_path / "files"))


@pytest.fixture
def stream(landed: FilesLake) -> Iterator[SourceStream]:
    """The stream, started as soon as a test does that."""
    from spark_jobs.lake.lake import Lake
    from spark_jobs.stream.job import SourceStream

    landed.configure(trigger_seconds=0, hung_minutes=0.25)
    stream = SourceStream(Lake(landed.spark, landed.settings), landed.source, available_now=False, live=False)
    try:
        yield stream
    finally:
        stream.stop()


def ids(lake: FilesLake) -> list[str]:
    is_made = DeltaTable.is_deltatable(str(lake.settings.lake / CLICKS.name))
    return sorted(row["event_id"] for row in lake.rows(CLICKS)) if is_made else []


def workers(server: SparkServer, kind: str) -> list[psutil.Process]:
    """Those of this kind; of the tasks' the first is the one that forks and ends the others."""
    processes = []
    for process in marked_processes(server.home):
        with suppress(psutil.Error):
            if kind in " ".join(process.cmdline()):
                processes.append(process)
    return sorted(processes, key=lambda process: process.pid)


def send(processes: list[psutil.Process], signal_number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal_number)


def appears(folder: Path, name: str, content: bytes) -> None:
    (folder / f".{name}").write_bytes(content)
    (folder / f".{name}").rename(folder / name)


@pytest.mark.parametrize("kind", [TASKS, QUERY])
def test_a_stream_goes_on_after_its_python_workers_have_stopped(
    landed: FilesLake, stream: SourceStream, server: SparkServer, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = landed.land(HOUR, {"a.jsonl": click("a", NOON)}, is_closed=False)
    stream.start_clicks()

    def has_read(*names: str) -> bool:
        assert stream.look(), stream.failure
        return ids(landed) == list(names)

    wait_until(lambda: has_read("a") and stream.logs[0].took, "the first file is read")
    # The first one took its time, to compile.
    stream.logs[0].took.clear()
    stopped = workers(server, kind)[1 if kind == TASKS else 0 :]
    assert stopped
    send(stopped, signal.SIGSTOP)
    appears(folder, "b.jsonl", click("b", NOON))
    wait_until(lambda: has_read("a", "b"), "the stream goes on")
    appears(folder, "c.jsonl", click("c", NOON))
    wait_until(lambda: has_read("a", "b", "c"), "and on")
    assert "the stream of web (clicks) hangs: its micro-batch " in capsys.readouterr().err
    send(stopped, signal.SIGCONT)
    appears(folder, "d.jsonl", click("d", NOON))
    wait_until(lambda: has_read("a", "b", "c", "d"), "what had stopped writes nothing")


def test_a_stream_that_hangs_again_after_each_restart_ends_and_says_so(
    landed: FilesLake,
    stream: SourceStream,
    server: SparkServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spark_jobs.stream.job.MOST_HUNG", 1)
    folder = landed.land(HOUR, {"a.jsonl": click("a", NOON)}, is_closed=False)
    stream.start_clicks()
    wait_until(lambda: stream.look() and stream.logs[0].took, "the first file is read")
    stream.logs[0].took.clear()
    stopped: set[psutil.Process] = set()

    def goes_on() -> bool:
        # Those that are new too: Spark starts others in place of those that it has ended.
        processes = workers(server, TASKS)
        send(processes, signal.SIGSTOP)
        stopped.update(processes)
        return stream.look()

    try:
        assert goes_on()
        appears(folder, "b.jsonl", click("b", NOON))
        wait_until(lambda: not goes_on(), "it gives up")
    finally:
        send(list(stopped), signal.SIGCONT)
    assert re.fullmatch(
        r"the stream of web \(clicks\) hangs: its micro-batch \d+ is under way for \d+ s \(.+\), "
        r"as it did after 1 restarts; see whether a disk or its input is stuck, .* raise hung_minutes \(0.25\)",
        str(stream.failure),
    )
    assert capsys.readouterr().err.count("; its query is started again") == 1
    assert ids(landed) == ["a"]

    landed.read_all()
    assert ids(landed) == ["a", "b"]

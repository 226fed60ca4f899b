"""A stream that goes on by itself: started when nobody does, left alone while it lives, ended when it hangs."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psutil
import pytest

from include.errors import ClickmillError
from include.hours import Hour
from include.streams.signs_of_life import sign_of_life
from include.tables import CLICKS
from spark_jobs.stream.supervision import supervise
from tests.stream.kafka_broker import Record
from tests.stream.streamed_lake import StreamedLake
from tests.support.temporary_lake import click
from tests.support.waiting import wait_until

HOUR = Hour.parse("2026-03-01T08")
MILLISECONDS = int(HOUR.start.timestamp() * 1000)


@pytest.fixture
def lake(streamed: StreamedLake, spark_remote: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[StreamedLake]:
    """A streamed lake, and the environment of a task; whatever stream is left is ended."""
    for name, value in {
        "SPARK_REMOTE": spark_remote,
        "CLICKMILL_SOURCES": str(streamed.settings.sources_file),
        "CLICKMILL_PIPELINE": str(streamed.settings.pipeline_file),
    }.items():
        monkeypatch.setenv(name, value)
    try:
        yield streamed
    finally:
        if pid(streamed):
            process = psutil.Process(pid(streamed))
            process.send_signal(signal.SIGCONT)
            process.terminate()
            # It may be starting its live counts, and have a micro-batch to finish.
            process.wait(240)


def pid(lake: StreamedLake) -> int | None:
    last = sign_of_life(lake.settings, "web")
    return last.pid if last is not None and psutil.pid_exists(last.pid) else None


def produce(lake: StreamedLake, event_id: str) -> None:
    lake.broker.produce(lake.topic, [Record(0, MILLISECONDS, click(event_id, "2026-03-01T08:00:00Z"))])


def test_a_stream_that_was_killed_or_hangs_is_restarted_and_one_that_lives_is_not(lake: StreamedLake) -> None:
    produce(lake, "a")
    assert "did not run; restarted" in supervise(lake.settings, "web")
    first = pid(lake)
    wait_until(lambda: len(lake.rows(CLICKS)) == 1, "the first click is there")
    runs = f"runs (process {first}), not yet read: 0 records"
    wait_until(lambda: runs in supervise(lake.settings, "web"), "its micro-batch has ended")
    assert pid(lake) == first is not None

    os.kill(first, signal.SIGKILL)
    produce(lake, "b")
    # Not only its first thread, which may be dead while another one still has the lock.
    psutil.Process(first).wait(60)
    assert "did not run; restarted" in supervise(lake.settings, "web")
    second = pid(lake)
    assert second not in (None, first)
    wait_until(lambda: len(lake.rows(CLICKS)) == 2, "the second click is there")

    os.kill(second, signal.SIGSTOP)
    last = sign_of_life(lake.settings, "web")
    assert last is not None
    wait_until(lambda: datetime.now(UTC) - last.at > timedelta(seconds=4), "it has been silent for a while")
    assert f"hung (process {second}" in supervise(lake.settings, "web", hung_after=timedelta(seconds=3))
    produce(lake, "c")
    wait_until(lambda: len(lake.rows(CLICKS)) == 3, "the third click is there")
    assert sorted(row["event_id"] for row in lake.rows(CLICKS)) == ["a", "b", "c"]


def test_a_stream_that_does_not_start_says_why(lake: StreamedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost:1")
    with pytest.raises(ClickmillError, match=r"did not start; .*localhost:1 does not answer"):
        supervise(lake.settings, "web")

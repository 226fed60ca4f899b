"""A stream that is started while a query works on its checkpoint: the newest start has it, and the others end."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

from include.errors import ClickmillError
from include.hours import Hour
from spark_jobs.stream.checkpoint import StreamCheckpoint
from spark_jobs.stream.fence import OVERTAKEN
from tests.stream.kafka_broker import KafkaBroker, Record
from tests.stream.streamed_home import StreamedHome
from tests.support.temporary_lake import click
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.spark

MILLISECONDS = int(Hour.parse("2026-03-01T08").start.timestamp() * 1000)
STARTS_AT_ONCE = 4


@pytest.fixture
def home(tmp_path: Path, broker: KafkaBroker) -> StreamedHome:
    return StreamedHome.in_folder(tmp_path / "home", broker, trigger_seconds=0)


def produce(home: StreamedHome, *event_ids: str) -> None:
    home.broker.produce(
        home.topic, [Record(0, MILLISECONDS, click(name, "2026-03-01T08:10:00Z")) for name in event_ids]
    )


def test_a_query_that_spark_has_lost_sight_of_writes_nothing_once_its_stream_is_started_again(
    home: StreamedHome, spark: SparkSession
) -> None:
    from spark_jobs.stream import query as stream_query

    produce(home, "a")
    query = stream_query.start(spark, home.settings, home.source)
    try:
        query.processAllAvailable()
        # What the next start does first.
        StreamCheckpoint.of(home.settings, "web").fence()
        produce(home, "b")
        with pytest.raises(StreamingQueryException, match=OVERTAKEN):
            query.awaitTermination(240)
    finally:
        query.stop()
    assert home.event_ids() == ["a"]

    produce(home, "c")
    home.read_all_in(spark)
    assert home.event_ids() == ["a", "b", "c"]


def test_a_stream_takes_its_checkpoint_back_from_a_query_that_has_begun_its_next_batch(
    home: StreamedHome, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    from spark_jobs.lake.lake import Lake
    from spark_jobs.stream.job import SourceStream

    stream = SourceStream(Lake(spark, home.settings), home.source, available_now=False, live=False)
    produce(home, "a")
    stream.start_clicks()
    try:
        stream.logs[0].handle.processAllAvailable()
        offsets = home.checkpoint / "offsets"
        last = max(int(file.name) for file in offsets.glob("[0-9]*"))
        shutil.copyfile(offsets / str(last), offsets / str(last + 1))
        produce(home, "b")

        def has_read_it() -> bool:
            assert stream.look(), stream.failure
            return len(home.event_ids()) == 2

        wait_until(has_read_it, "the stream goes on")
    finally:
        stream.stop()
    assert home.event_ids() == ["a", "b"]
    assert "(clicks) was ended by another start of it" in capsys.readouterr().err


class EndingQuery:
    """A query that has been told to end and has not yet: Spark says from then on that it is not active."""

    isActive = False

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query

    def __getattr__(self, name: str) -> Any:
        return getattr(self._query, name)


def test_a_query_that_is_being_ended_is_waited_for_before_it_is_started_again(
    home: StreamedHome, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    from spark_jobs.lake.lake import Lake
    from spark_jobs.stream.job import SourceStream

    stream = SourceStream(Lake(spark, home.settings), home.source, available_now=False, live=False)
    stream.start_clicks()
    try:
        former = stream.logs[0].handle
        stream.logs[0].handle = cast("StreamingQuery", EndingQuery(former))
        assert stream.look(), stream.failure
        assert stream.logs[0].handle.runId != former.runId
        assert stream.logs[0].handle.isActive
        assert not former.isActive
    finally:
        stream.stop()
    assert "(clicks) was ended by another start of it" in capsys.readouterr().err


def test_a_stream_that_is_asked_to_end_while_it_starts_begins_nothing(home: StreamedHome, spark: SparkSession) -> None:
    from spark_jobs.stream import job as stream_job
    from spark_jobs.stream.end_request import EndRequest

    produce(home, "a")
    asked_to_end = EndRequest()
    asked_to_end.made = True
    with pytest.raises(ClickmillError, match="the stream of web was asked to end before it had read all"):
        stream_job.stream(spark, home.settings, [home.source], available_now=True, asked_to_end=asked_to_end)
    stream_job.stream(spark, home.settings, [home.source], available_now=False, asked_to_end=asked_to_end)
    assert home.begun_batches() == 0
    home.read_all_in(spark)
    assert home.event_ids() == ["a"]


def test_after_two_starts_at_once_spark_refuses_no_further_one(home: StreamedHome, spark: SparkSession) -> None:
    produce(home, "a")
    home.read_all_in(spark)
    with same_query_elsewhere(spark, home) as refused:
        assert "[CONCURRENT_QUERY]" in refused

        produce(home, "b")
        home.read_all_in(spark)
    assert home.event_ids() == ["a", "b"]


@contextmanager
def same_query_elsewhere(spark: SparkSession, home: StreamedHome) -> Iterator[str]:
    """Start queries of the stream's id at once, again and again, until Spark refuses one; what it says.

    Not on the stream's checkpoint: Spark goes by the id alone, and what these read is nobody's.
    """
    checkpoint = home.settings.home / "elsewhere"
    checkpoint.mkdir()
    (checkpoint / "metadata").write_text(json.dumps({"id": query_id(home)}))
    rows = spark.readStream.format("rate").load()
    started: list[StreamingQuery] = []
    refused: list[str] = []

    def start() -> None:
        try:
            started.append(rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start())
        except PySparkException as error:
            refused.append(str(error))

    deadline = time.monotonic() + 120
    try:
        while not refused and time.monotonic() < deadline:
            starts = [threading.Thread(target=start) for _ in range(STARTS_AT_ONCE)]
            for thread in starts:
                thread.start()
            for thread in starts:
                thread.join()
        yield "".join(refused)
    finally:
        for query in started:
            query.stop()


def query_id(home: StreamedHome) -> str:
    told: dict[str, str] = json.loads((home.checkpoint / "metadata").read_text(encoding="utf-8"))
    return told["id"]

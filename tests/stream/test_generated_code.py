"""What a session or a micro-batch made Spark compile must serve the next."""

from __future__ import annotations

import json
import random
import urllib.request
from typing import TYPE_CHECKING

import pytest

from include.hours import Hour
from include.tables import STREAM_BATCHES, STREAM_PROGRESS
from spark_jobs.engine.spark_status import SparkStatus
from tests.stream.kafka_broker import Record
from tests.stream.streamed_lake import StreamedLake
from tests.support import own_spark
from tests.support.spark_server import SparkServer, open_session
from tests.support.temporary_lake import click

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HOUR = Hour.parse("2026-03-01T08")
#: Records of the parts, and of a micro-batch: their 8 micro-batches stay below the 9 commits after which delta-rs
#: writes a checkpoint, which Spark compiles code to read.
PARTS, AT_ONCE = (78, 117, 117), 39


#: Spark counts what it compiles for whomever.
server, spark = own_spark.server, own_spark.spark


def compiled_classes(spark: SparkSession) -> int:
    """How often this Spark has compiled generated code, from the metrics beside its UI."""
    status = SparkStatus.of(spark)
    assert status is not None
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{status.address}/metrics/json", timeout=10) as answer:
        histograms = json.load(answer)["histograms"]
    return sum(
        int(histogram["count"])
        for name, histogram in histograms.items()
        if name.endswith("CodeGenerator.compilationTime")
    )


def test_a_session_compiles_nothing_that_another_has(spark: SparkSession, server: SparkServer) -> None:
    # A whole number is part of the code, so that nobody has compiled this before.
    number = random.randrange(1 << 40)

    def ask(session: SparkSession) -> int:
        before = compiled_classes(session)
        session.range(100).where(f"id % 7 + {number} = {number}").selectExpr(f"id + {number}").collect()
        return compiled_classes(session) - before

    assert ask(spark) > 0
    with open_session(server.remote) as second:
        assert ask(second) == 0


def test_further_micro_batches_compile_less_than_a_class_each(streamed: StreamedLake) -> None:
    streamed.configure(max_rows_per_batch=AT_ONCE)
    moment = int(HOUR.start.timestamp() * 1000)
    compiled = [compiled_classes(streamed.spark)]
    for part, count in enumerate(PARTS):
        lines = [click(f"{part}-{number}", HOUR.start.isoformat()) for number in range(count - 1)]
        records = [Record(number % 3, moment + part, line) for number, line in enumerate([*lines, b"no click"])]
        streamed.broker.produce(streamed.topic, records)
        streamed.read_all(live=True)
        compiled.append(compiled_classes(streamed.spark))
    batches = len({row["batch_id"] for row in streamed.rows(STREAM_BATCHES)})
    live = [row for row in streamed.rows(STREAM_PROGRESS) if row["query"] != "clicks" and row["rows"]]
    print(f"{batches} and {len(live)} micro-batches; compiled so far: {compiled}")
    assert (batches, len(live)) == (8, 6)
    # Spark compiles a look at each watermark that is new. With the time of a micro-batch in its code, five classes and
    # more were compiled for each.
    assert compiled[3] - compiled[2] < (batches + len(live)) / 3

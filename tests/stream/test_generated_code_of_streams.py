"""What a micro-batch made Spark compile must serve the next."""

from __future__ import annotations

import pytest

from include.log_hours import Hour
from include.tables import STREAM_BATCHES, STREAM_PROGRESS
from tests.compiled_classes import compiled_classes
from tests.jobs.temporary_lake import click
from tests.stream.kafka_broker import Record
from tests.stream.streamed_lake import StreamedLake

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HOUR = Hour.parse("2026-03-01T08")
#: Records of a part, and of a micro-batch: their 9 micro-batches stay below the 10 commits after which Delta sums up.
RECORDS, AT_ONCE = 117, 39


def test_further_micro_batches_compile_less_than_a_class_each(streamed: StreamedLake) -> None:
    streamed.configure(max_rows_per_batch=AT_ONCE)
    moment = int(HOUR.start.timestamp() * 1000)
    compiled = [compiled_classes(streamed.spark)]
    for part in range(3):
        lines = [click(f"{part}-{number}", HOUR.start.isoformat()) for number in range(RECORDS - 1)]
        records = [Record(number % 3, moment + part, line) for number, line in enumerate([*lines, b"no click"])]
        streamed.broker.produce(streamed.topic, records)
        streamed.read_all(live=True)
        compiled.append(compiled_classes(streamed.spark))
    batches = len({row["batch_id"] for row in streamed.rows(STREAM_BATCHES)})
    live = [row for row in streamed.rows(STREAM_PROGRESS) if row["query"] != "clicks" and row["rows"]]
    print(f"{batches} and {len(live)} micro-batches; compiled so far: {compiled}")
    assert (batches, len(live)) == (9, 6)
    # Spark compiles a look at each watermark that is new. With the time of a micro-batch in its code, five classes and
    # more were compiled for each.
    assert compiled[3] - compiled[2] < (batches + len(live)) / 3

"""Clicks that arrive out of order on a stream: which keys they are of is logged, as of landed files."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta

import pytest

from include.hours import Hour
from include.job_arguments import JobArguments
from include.tables import OUT_OF_ORDER_KEYS
from tests.stream.kafka_broker import Record
from tests.stream.streamed_lake import StreamedLake
from tests.support.temporary_lake import click

HOUR = Hour.parse("2026-03-01T08")
PARTITIONS = 3


@pytest.mark.slow
def test_the_keys_of_streamed_clicks_out_of_order_are_logged(streamed: StreamedLake) -> None:
    from spark_jobs.ingest.out_of_order_keys import log_out_of_order_keys

    rng = random.Random(8)
    records: list[Record] = []
    late: Counter[str] = Counter()
    delays: dict[str, int] = {}
    latest: dict[tuple[int, str], int] = {}
    for number in range(1200):
        partition, url = rng.randrange(PARTITIONS), f"http://shop.test/{rng.randrange(40)}"
        at = number - rng.choice([0, 0, 0, rng.randrange(600)])
        arrived = HOUR.start + timedelta(seconds=number)
        line = click(f"e{number}", (HOUR.start + timedelta(seconds=at)).isoformat(), url)
        records.append(Record(partition, int(arrived.timestamp() * 1000), line))
        before = latest.get((partition, url), at)
        if at < before:
            late[url] += 1
            delays[url] = max(delays.get(url, 0), before - at)
        latest[partition, url] = max(before, at)
    assert len(late) > 30
    assert late.total() > 150
    streamed.configure(max_rows_per_batch=500)
    streamed.broker.produce(streamed.topic, records)
    streamed.read_all()
    arguments = JobArguments.of("web", None, None, str(HOUR))

    def find() -> list[str]:
        messages = log_out_of_order_keys(streamed.spark, streamed.settings, arguments, key="url")
        rows = {row["key"]: row for row in streamed.rows(OUT_OF_ORDER_KEYS)}
        assert {key: row["out_of_order"] for key, row in rows.items()} == late
        assert {key: row["largest_delay"] for key, row in rows.items()} == delays
        return messages

    report = find()
    assert report[0] == f"web {arguments.log_hours}: {late.total()} clicks of {len(late)} urls out of order"
    # Settled: its clicks are in few files now, of several micro-batches each.
    streamed.run("ingest", str(HOUR))
    assert find() == report

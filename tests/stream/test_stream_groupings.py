"""Groupings on a real stream: how many clicks each instance has, and in which order a key's clicks reach it."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from include.buckets import bucket_of
from include.counting import live_count_table
from include.hours import Hour
from include.streams.kafka import topic_of
from include.tables import CLICKS, STREAM_PROGRESS
from tests.stream.kafka_broker import Record
from tests.stream.live_truth import live_counts, true_counts
from tests.stream.streamed_lake import StreamedLake
from tests.support.temporary_lake import click

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HOUR = Hour.parse("2026-03-01T08")
URLS = [f"http://shop.test/{number}" for number in range(40)]
CLICKS_SENT, INSTANCES = 3000, 4


def records() -> list[Record]:
    """Clicks in the order of their time, half of them on one URL; a URL's go to one partition of the topic."""
    rng = random.Random(5)
    sent = []
    for number in range(CLICKS_SENT):
        at = HOUR.start + timedelta(seconds=number)
        url = URLS[0] if rng.random() < 0.5 else rng.choice(URLS)
        line = click(f"e{number}", at.isoformat(), url, geo={"country": rng.choice(["DE", "FR"])})
        sent.append(Record(bucket_of(url, 3), int(at.timestamp() * 1000), line))
    return sent


GROUPINGS = """
[live]
watermark_minutes = 400
[counts.url]
grouping = "fields"
[counts.country_code]
grouping = "shuffle"
[counts.status]
grouping = "fifo"
"""


def test_live_counts_are_made_by_the_instances_of_the_configured_grouping(streamed: StreamedLake) -> None:
    pipeline = streamed.settings.pipeline_file
    pipeline.write_text(pipeline.read_text() + GROUPINGS, encoding="utf-8")
    sent, before = records(), Counter[int]()
    for part in (sent[:1000], sent[1000:]):
        streamed.broker.produce(streamed.topic, part)
        streamed.read_all(live=True)
        by_bucket = Counter(bucket_of(row["url"], INSTANCES) for row in streamed.rows(CLICKS))
        assert loads(streamed, "url")[-1] == [by_bucket[n] - before[n] for n in range(INSTANCES)]
        before = by_bucket
    assert all(max(load) - min(load) <= INSTANCES for load in loads(streamed, "country_code")), "round-robin"
    assert sum(map(sum, loads(streamed, "status"))) == CLICKS_SENT, "by the instances that read them"
    # Whatever instance counted a part of a key's clicks, the parts add up.
    for key in streamed.settings.pipeline.counts:
        assert live_counts(streamed, live_count_table(key), key) == true_counts(streamed, key), key


def loads(lake: StreamedLake, query: str) -> list[list[int]]:
    """The clicks by instance of each micro-batch that had any."""
    rows = [row for row in lake.rows(STREAM_PROGRESS) if row["query"] == query and row["rows"]]
    return [row["rows_per_instance"] for row in sorted(rows, key=lambda row: row["batch_id"])]


def test_fields_grouping_keeps_a_keys_order_on_the_stream_and_shuffle_does_not(
    tmp_path: Path, streamed: StreamedLake
) -> None:
    from spark_jobs.aggregate.groupings import FieldsGrouping, ShuffleGrouping, with_instance
    from spark_jobs.stream.checkpoint import StreamCheckpoint
    from spark_jobs.stream.topic import TopicInput
    from spark_jobs.stream.writer import start_writer

    streamed.configure(max_rows_per_batch=1000)
    streamed.broker.produce(streamed.topic, records())
    partitioned = tmp_path / "partitioned"

    def partition(rows: DataFrame, batch_id: int) -> None:
        from pyspark.sql import functions as F

        urls = rows.select(F.get_json_object(F.col("value").cast("string"), "$.url").alias("url"), "offset")
        for grouping in (FieldsGrouping(4, ("url",)), ShuffleGrouping(4)):
            placed = with_instance(grouping.repartition(urls)).withColumn("place", F.monotonically_increasing_id())
            placed.write.parquet(str(partitioned / grouping.name / str(batch_id)))

    topic_input = TopicInput(streamed.spark, streamed.settings, streamed.source)
    topic = topic_input.records(topic_of(streamed.source), "earliest")
    query = start_writer(
        streamed.spark,
        topic.writeStream,
        partition,
        StreamCheckpoint("partitioned", tmp_path / "checkpoint", tmp_path / "lock"),
        state_partitions=2,
        trigger_seconds=None,
    )
    assert query.awaitTermination(240)
    fields, shuffle = (_handled(partitioned / name) for name in ("fields", "shuffle"))
    assert len(list((partitioned / "fields").iterdir())) >= 3, "several micro-batches"
    assert _instances_of(fields, URLS[0]) == 1
    assert _instances_of(shuffle, URLS[0]) == INSTANCES
    print("out of order: fields", _out_of_order(fields), "shuffle", _out_of_order(shuffle))
    assert _out_of_order(fields) == 0
    assert _out_of_order(shuffle) > CLICKS_SENT / 4


def _handled(folder: Path) -> list[dict[str, Any]]:
    """What the instances handled, in the order in which they did."""
    batches = sorted(folder.iterdir(), key=lambda batch: int(batch.name))
    rows = [sorted(pq.read_table(batch).to_pylist(), key=lambda row: row["place"]) for batch in batches]
    assert sum(map(len, rows)) == CLICKS_SENT
    return [row for of_batch in rows for row in of_batch]


def _instances_of(rows: list[dict[str, Any]], url: str) -> int:
    return len({row["instance_id"] for row in rows if row["url"] == url})


def _out_of_order(rows: list[dict[str, Any]]) -> int:
    """Clicks that an instance handles after a later one of the same URL; a URL is in one partition: offsets tell."""
    latest: dict[tuple[int, str], int] = defaultdict(int)
    count = 0
    for row in rows:
        place = (row["instance_id"], row["url"])
        count += row["offset"] < latest[place]
        latest[place] = max(row["offset"], latest[place])
    return count

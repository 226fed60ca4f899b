"""How far a stream has read its topic: whether all records of a log hour are in the lake."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from datetime import datetime, timedelta

import pyarrow.compute as pc
from confluent_kafka import Consumer, KafkaException, TopicPartition
from deltalake import DeltaTable

from include.errors import ClickmillError
from include.kafka import librdkafka_options, topic_of
from include.log_hours import Hour
from include.settings import Settings
from include.sources import Source
from include.tables import STREAM_BATCHES

#: How long the broker is given for an answer, in seconds.
_PATIENCE = 15.0


def is_settleable(settings: Settings, source: Source, log_hour: Hour, now: datetime) -> bool:
    """Whether a log hour of a streamed source can be counted: all of it is read, or its grace time is over."""
    return has_passed(settings, source, log_hour, now) or now >= log_hour.end + timedelta(minutes=source.grace_minutes)


def has_passed(settings: Settings, source: Source, log_hour: Hour, now: datetime) -> bool:
    """Whether the hour is over and the stream has read all of its records that are in the topic.

    Raises:
        ClickmillError: if the broker does not answer.
    """
    if now < log_hour.end:
        return False
    read = _next_offsets(settings, source)
    return all(read.get(partition, 0) >= needed for partition, needed in _ends(settings, source, log_hour).items())


def _next_offsets(settings: Settings, source: Source) -> dict[int, int]:
    """For each partition of the topic the offset after the last one that is in the lake."""
    path = settings.lake / STREAM_BATCHES.name
    if not path.is_dir():
        return {}
    rows = DeltaTable(path).to_pyarrow_table(
        columns=["partition", "last_offset"], filters=[("source", "=", source.name)]
    )
    last = rows.group_by("partition").aggregate([("last_offset", "max")])
    return dict(zip(last["partition"].to_pylist(), pc.add(last["last_offset_max"], 1).to_pylist(), strict=True))


def _ends(settings: Settings, source: Source, log_hour: Hour) -> Mapping[int, int]:
    """For each partition the offset of its first record after the hour, or of its end; 0 if it has none before."""
    topic = topic_of(source).topic
    options = librdkafka_options(topic_of(source), settings, os.environ)
    consumer = Consumer(options | {"group.id": "clickmill", "enable.auto.commit": False, "log_level": 0})
    deadline = time.monotonic() + _PATIENCE
    try:
        while True:
            try:
                return _ends_of(consumer, topic, log_hour)
            except KafkaException as error:
                # It may be of a moment: a partition whose leader is being chosen, a broker that is started anew.
                if time.monotonic() > deadline:
                    raise ClickmillError(
                        f"the broker of {source.name} ({options['bootstrap.servers']}, topic {topic}) does not answer: "
                        f"{error.args[0].str()}"
                    ) from None
                time.sleep(0.5)
    finally:
        consumer.close()


def _ends_of(consumer: Consumer, topic: str, log_hour: Hour) -> Mapping[int, int]:
    known = consumer.list_topics(topic, timeout=_PATIENCE).topics[topic]
    if known.error is not None:
        raise KafkaException(known.error)
    end = int(log_hour.end.timestamp() * 1000)
    asked = [TopicPartition(topic, partition, end) for partition in known.partitions]
    ends = {}
    for found in consumer.offsets_for_times(asked, timeout=_PATIENCE):
        if found.error is not None:
            raise KafkaException(found.error)
        first, last = consumer.get_watermark_offsets(found, timeout=_PATIENCE)
        needed = found.offset if found.offset >= 0 else last
        ends[found.partition] = needed if needed > first else 0
    return ends

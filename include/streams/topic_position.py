"""How far a stream has read its topic; see ``include.streams.position.StreamPosition``."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from confluent_kafka import Consumer, KafkaException, TopicPartition

from include.errors import ClickmillError
from include.landing import LandedHour
from include.log_hours import Hour
from include.settings import Settings
from include.sources import Source
from include.stored_rows import read_table
from include.streams.kafka import librdkafka_options, topic_of
from include.tables import STREAM_BATCHES

#: How long the broker is given for an answer, in seconds.
_PATIENCE = 15.0


@dataclass(frozen=True)
class TopicPosition:
    """The partitions of a source's topic: read up to the offset after the last one that is in the lake."""

    settings: Settings
    source: Source

    def has_read(self, log_hour: Hour, now: datetime) -> bool:
        """Whether the hour is over and all of its records that are in the topic are read.

        Raises:
            ClickmillError: if the broker does not answer.
        """
        if now < log_hour.end:
            return False
        read = self._next_offsets()
        needed = _ends(self.settings, self.source, log_hour)
        return all(read.get(partition, 0) >= offset for partition, offset in needed.items())

    def landed(self, log_hour: Hour, batches: Sequence[Mapping[str, Any]]) -> LandedHour:
        """The hour as if it were a landing partition with a file for each partition of the topic."""
        # A source may have been streamed from another topic before, or from files.
        partitions = sorted({(row["topic"], row["partition"]) for row in batches if row["topic"] is not None})
        return LandedHour(
            folder=Path(topic_of(self.source).topic),
            hour=log_hour,
            files=tuple(Path(topic, str(partition)) for topic, partition in partitions),
            size_bytes=sum(row["bytes"] for row in batches),
            is_closed=False,
        )

    def _next_offsets(self) -> dict[int, int]:
        """For each partition of the topic the offset after the last one that is in the lake."""
        of_topic = [("source", "=", self.source.name), ("topic", "=", topic_of(self.source).topic)]
        rows = read_table(self.settings.lake, STREAM_BATCHES, ["partition", "last_offset"], of_topic)
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
                # It may be of a moment: a partition whose leader is being chosen, a broker that restarts.
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

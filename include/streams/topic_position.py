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

    def read_hours(self, log_hours: Sequence[Hour], now: datetime) -> set[Hour]:
        """Those of these hours that are over, and of which all records that are in the topic are read.

        Raises:
            ClickmillError: if the broker does not answer.
        """
        over = [hour for hour in log_hours if now >= hour.end]
        if not over:
            return set()
        read = self._next_offsets()
        return {
            hour
            for hour, needed in _ends(self.settings, self.source, over).items()
            if all(read.get(partition, 0) >= offset for partition, offset in needed.items())
        }

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


def _ends(settings: Settings, source: Source, log_hours: Sequence[Hour]) -> dict[Hour, dict[int, int]]:
    """Of each hour, for each partition the offset of its first record after it, or of its end; 0 if none is before.

    One consumer is for all hours: to open one takes a second, and a run may open hundreds of hours again.
    """
    topic = topic_of(source).topic
    options = librdkafka_options(topic_of(source), settings, os.environ)
    consumer = Consumer(options | {"group.id": "clickmill", "enable.auto.commit": False, "log_level": 0})
    deadline = time.monotonic() + _PATIENCE
    try:
        while True:
            try:
                return _ends_of(consumer, topic, log_hours)
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


def _ends_of(consumer: Consumer, topic: str, log_hours: Sequence[Hour]) -> dict[Hour, dict[int, int]]:
    known = consumer.list_topics(topic, timeout=_PATIENCE).topics[topic]
    if known.error is not None:
        raise KafkaException(known.error)
    partitions = sorted(known.partitions)
    # What an hour needs is asked before where the topic ends: what comes in between may be of that hour.
    after = {hour: _first_after(consumer, topic, partitions, hour) for hour in log_hours}
    there = {
        partition: consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_PATIENCE)
        for partition in partitions
    }
    ends: dict[Hour, dict[int, int]] = {}
    for hour, offsets in after.items():
        ends[hour] = {}
        for partition, (first, last) in there.items():
            needed = offsets[partition] if offsets[partition] >= 0 else last
            ends[hour][partition] = needed if needed > first else 0
    return ends


def _first_after(consumer: Consumer, topic: str, partitions: Sequence[int], hour: Hour) -> dict[int, int]:
    """For each partition the offset of the first record after the hour; negative where there is none."""
    end = int(hour.end.timestamp() * 1000)
    asked = [TopicPartition(topic, partition, end) for partition in partitions]
    found = consumer.offsets_for_times(asked, timeout=_PATIENCE)
    for one in found:
        if one.error is not None:
            raise KafkaException(one.error)
    return {one.partition: one.offset for one in found}

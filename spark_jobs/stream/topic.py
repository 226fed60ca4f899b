"""A Kafka topic as the input of a stream."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from include.errors import ClickmillError
from include.settings import Settings
from include.sources import KafkaTopic, Source
from include.streams.broker_topic import (
    ISOLATION,
    NO_ID,
    BrokerTopic,
    cut_off,
    is_same,
    made_again,
    next_offsets,
    options_of,
)
from include.streams.kafka import spark_options, topic_of
from spark_jobs.ingest.spark_arrivals import arrivals_of_records
from spark_jobs.lines.arrivals import LineParser
from spark_jobs.lines.parse_lines import most_line_bytes
from spark_jobs.stream.checkpoint import StreamCheckpoint
from spark_jobs.stream.compatibility import keep_with_checkpoint
from spark_jobs.stream.lines import lines_of_records
from spark_jobs.stream.resume import StreamStart

#: Spark's word for the first record of a partition that is still there.
EARLIEST = -2
#: How long a running stream waits for a broker that is restarted, in seconds.
BROKER_PATIENCE = 60.0
#: What the consumers in Spark's tasks are configured with, unless the source's options say otherwise.
CONSUMER_OPTIONS = ISOLATION | {
    # A consumer that has come to the topic's end asks for more, and before it can be sent to read elsewhere the broker
    # must have answered: by default it waits half a second for records to come. A task asks only while it runs, so an
    # idle stream asks no more often.
    "fetch.max.wait.ms": "10",
    # Of each poll Spark asks the broker again for the first and the last offset there is: so many records a poll, by
    # default 500, as were fetched, and so many bytes a fetch, by default 1 MiB.
    "max.poll.records": "100000",
    "max.partition.fetch.bytes": str(8 * 2**20),
    "receive.buffer.bytes": "-1",
}
#: In the checkpoint's folder: the id of the topic that it is of.
_NOTED = "topic_id"
_LOST = re.compile(r"data may have been (?:lost|missed)")
_UNREAD = re.compile(r"(?:Could not read records in offset|Partition \S+ offset was changed|Reason:) .*")
_CUT = re.compile(r"Partition \S+-(\d+)(?:'s)? offset was changed from (\d+) to (\d+)")


@dataclass(frozen=True)
class ReadTopic:
    """The topic that a checkpoint is of: its name may be given to another one, and its offsets may begin again."""

    name: str
    topic_id: str
    checkpoint: StreamCheckpoint
    #: Of librdkafka, with secrets.
    options: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, topic: KafkaTopic, settings: Settings, checkpoint: StreamCheckpoint) -> ReadTopic:
        """That of this checkpoint, noted at its start."""
        noted = checkpoint.folder / _NOTED
        kept = noted.read_text(encoding="utf-8").strip() if noted.exists() else NO_ID
        return cls(topic.topic, kept, checkpoint, options_of(topic, settings))

    def require(self, batch_id: int | None = None) -> None:
        """See that the topic is this one still, and so was what a micro-batch has read of it before.

        Raises:
            ClickmillError: if it is not, or has lost what was read, or its broker does not say.
        """
        changed = self.changed() or (self._cut_off(batch_id) if batch_id else None)
        if changed:
            raise ClickmillError(changed)

    def changed(self) -> str | None:
        """That the name is another topic's now, and the way out; None if it is not."""
        if self.topic_id == NO_ID:
            return None
        broker = _reached(self.name, tuple(sorted(self.options.items())))
        now, _ = broker.asked(broker.described, BROKER_PATIENCE)
        if is_same(self.topic_id, now):
            return None
        return (
            f"{made_again(self.name, self.topic_id, now)}; nothing of the new one is read: to read it from its "
            f"earliest record, stop the stream and remove {self.checkpoint.folder}; what the former one had left is "
            "gone with it"
        )

    def cut_off(self, read: Mapping[int, int], ends: Mapping[int, int]) -> str | None:
        """That the topic ends before what was read of it, and the way out; None if it does not."""
        cut = cut_off(self.name, read, ends)
        return cut and (
            f"{cut}, as one does that was restored, or whose leader was elected uncleanly: offsets are given out again;"
            f" to read it again from its earliest record, stop the stream and remove {self.checkpoint.folder}: copies "
            "of clicks are dropped by their event ids, and counted again in a source without"
        )

    def _cut_off(self, batch_id: int) -> str | None:
        """As Spark has found its end for this micro-batch, with fail_on_data_loss = false too."""
        before, now = (_offsets(self.checkpoint.folder, number) for number in (batch_id - 1, batch_id))
        return self.cut_off(before, now)


@dataclass(frozen=True)
class TopicInput:
    """The topic of a source."""

    spark: SparkSession
    settings: Settings
    source: Source

    def arrivals(self, start: StreamStart) -> DataFrame:
        """The topic's records as arrivals; without a checkpoint, those after the batches in the lake.

        Raises:
            ClickmillError: if the broker is not known or does not name the partitions, the topic is not the one that
                the checkpoint is of, or the lake does not say where to go on.
        """
        topic = topic_of(self.source)
        if not start.has_checkpoint:
            topic_id, _ = _described(topic, self.settings)
            keep_with_checkpoint(start.checkpoint.folder / _NOTED, f"{topic_id}\n")
        read = self.read_topic(start.checkpoint)
        read.require()
        begun_at = topic.starting_offsets if start.has_checkpoint else self._begun_at(start, read.topic_id)
        lines = lines_of_records(self.records(topic, begun_at), most_line_bytes(self.source))
        return arrivals_of_records(lines, LineParser.of(self.source, self.settings))

    def read_topic(self, checkpoint: StreamCheckpoint) -> ReadTopic:
        """The topic that this checkpoint of the source is of."""
        return ReadTopic.of(topic_of(self.source), self.settings, checkpoint)

    def explained(self, reason: str) -> str | None:
        """Records that were removed before they were read, or are not those of the topic that was read."""
        lost = lost_records(reason, topic_of(self.source))
        if lost is None:
            return None
        read = self.read_topic(StreamCheckpoint.of(self.settings, self.source.name))
        partition, before, now = map(int, cut.groups()) if (cut := _CUT.search(reason)) else (0, 0, 0)
        try:
            return read.changed() or read.cut_off({partition: before}, {partition: now}) or lost
        except ClickmillError:
            return lost

    def _begun_at(self, start: StreamStart, topic_id: str) -> str:
        """Spark's startingOffsets of a stream without a checkpoint.

        A partition of which the lake has no record is read from its beginning.
        """
        topic = topic_of(self.source)
        batches = start.earlier_batches(lambda row: bool(row["topic"] == topic.topic))
        if not batches:
            return topic.starting_offsets
        broker = BrokerTopic.of(topic, self.settings)
        partitions = partitions_of(topic, self.settings)
        ends = {partition: end for partition, (_, end) in broker.asked(lambda: broker.bounds(partitions)).items()}
        read = next_offsets(batches, topic_id)
        begun_again = None if read else f"topic {topic.topic} is another one than that of the batches in the lake"
        if begun_again := begun_again or cut_off(topic.topic, read, ends):
            print(f"{begun_again}: it is read from its earliest record", flush=True)
        known = {partition: offset for partition, offset in read.items() if offset <= ends.get(partition, -1)}
        return starting_offsets(topic, dict.fromkeys(partitions, EARLIEST) | known)

    def records(self, topic: KafkaTopic, starting_offsets: str) -> DataFrame:
        """The topic's records, as Spark's Kafka source has them, from these offsets on if no checkpoint says more."""
        options = CONSUMER_OPTIONS | spark_options(topic, self.settings, os.environ)
        return (
            self.spark.readStream.format("kafka")
            .options(**{f"kafka.{name}": value for name, value in options.items()})
            .option("subscribe", topic.topic)
            .option("startingOffsets", starting_offsets)
            .option("failOnDataLoss", topic.fail_on_data_loss)
            .option("maxOffsetsPerTrigger", topic.max_rows_per_batch)
            .load()
        )


def partitions_of(topic: KafkaTopic, settings: Settings) -> list[int]:
    """The topic's partitions, as its broker has them now.

    Raises:
        ClickmillError: if the broker does not say.
    """
    _, partitions = _described(topic, settings)
    return partitions


def _described(topic: KafkaTopic, settings: Settings) -> tuple[str, list[int]]:
    broker = BrokerTopic.of(topic, settings)
    return broker.asked(broker.described)


def starting_offsets(topic: KafkaTopic, offsets: Mapping[int, int]) -> str:
    """Spark's startingOffsets from these on."""
    return json.dumps({topic.topic: {str(partition): offset for partition, offset in offsets.items()}})


def lost_records(reason: str, topic: KafkaTopic) -> str | None:
    """In one line, what Spark says of records that are gone; none if it is about something else."""
    if not _LOST.search(reason):
        return None
    unread = _UNREAD.search(reason)
    return (
        f"records of topic {topic.topic} were removed before they were read ({unread[0] if unread else 'not said'}); "
        "they are lost: to go on without them, set fail_on_data_loss = false in the source's kafka table"
    )


@cache
def _reached(name: str, options: tuple[tuple[str, str], ...]) -> BrokerTopic:
    """The topic, by one client for all micro-batches: an answer takes it a millisecond."""
    return BrokerTopic.reached(name, dict(options))


def _offsets(checkpoint: Path, batch_id: int) -> dict[int, int]:
    """Where a micro-batch ends, by partition; a line for the format, one for the settings, and then the offsets."""
    text = (checkpoint / "offsets" / str(batch_id)).read_text(encoding="utf-8").splitlines()[2]
    return {int(partition): offset for of_topic in json.loads(text).values() for partition, offset in of_topic.items()}

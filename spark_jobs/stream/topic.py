"""A Kafka topic as the input of a stream."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession

from include.errors import ClickmillError
from include.settings import Settings
from include.sources import KafkaTopic, Source
from include.streams.kafka import librdkafka_options, spark_options, topic_of
from spark_jobs.ingest.arrivals import LineParser
from spark_jobs.ingest.parse_lines import most_line_bytes
from spark_jobs.ingest.spark_arrivals import arrivals_of_records
from spark_jobs.stream.lines import lines_of_records
from spark_jobs.stream.resume import StreamStart

#: Spark's word for the first record of a partition that is still there.
EARLIEST = -2
BROKER_TIMEOUT = 30.0
#: What the consumers in Spark's tasks are configured with, unless the source's options say otherwise.
CONSUMER_OPTIONS = {
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
_LOST = re.compile(r"data may have been (?:lost|missed)")
_UNREAD = re.compile(r"(?:Could not read records in offset|Partition \S+ offset was changed|Reason:) .*")


@dataclass(frozen=True)
class TopicInput:
    """The topic of a source."""

    spark: SparkSession
    settings: Settings
    source: Source

    def arrivals(self, start: StreamStart) -> DataFrame:
        """The topic's records as arrivals; without a checkpoint, those after the batches in the lake.

        Raises:
            ClickmillError: if the broker is not known or does not name the partitions, or the lake does not say where
                to go on.
        """
        topic = topic_of(self.source)
        starting_offsets: str = topic.starting_offsets
        if not start.has_checkpoint:
            batches = start.earlier_batches(lambda row: bool(row["topic"] == topic.topic))
            if batches:
                starting_offsets = offsets_after(batches, topic, partitions_of(topic, self.settings))
        lines = lines_of_records(self.records(topic, starting_offsets), most_line_bytes(self.source))
        return arrivals_of_records(lines, LineParser.of(self.source, self.settings))

    def explained(self, reason: str) -> str | None:
        """Records that were removed before they were read."""
        return lost_records(reason, topic_of(self.source))

    def records(self, topic: KafkaTopic, starting_offsets: str) -> DataFrame:
        """The topic's records, as Spark's Kafka source has them, from these offsets on if no checkpoint says more."""
        given = CONSUMER_OPTIONS | spark_options(topic, self.settings, os.environ)
        return (
            self.spark.readStream.format("kafka")
            .options(**{f"kafka.{name}": value for name, value in given.items()})
            .option("subscribe", topic.topic)
            .option("startingOffsets", starting_offsets)
            .option("failOnDataLoss", topic.fail_on_data_loss)
            .option("maxOffsetsPerTrigger", topic.max_rows_per_batch)
            .load()
        )


def offsets_after(batches: Iterable[Mapping[str, Any]], topic: KafkaTopic, partitions: Iterable[int]) -> str:
    """Spark's startingOffsets after the last record of each partition that is in the lake.

    A partition of which the lake has no record is read from its beginning.
    """
    next_offsets = dict.fromkeys(partitions, EARLIEST)
    for row in batches:
        if row["partition"] in next_offsets:
            next_offsets[row["partition"]] = max(row["last_offset"] + 1, next_offsets[row["partition"]])
    return json.dumps({topic.topic: {str(partition): offset for partition, offset in next_offsets.items()}})


def partitions_of(topic: KafkaTopic, settings: Settings) -> list[int]:
    """The topic's partitions, as its broker has them now.

    Raises:
        ClickmillError: if the broker does not say.
    """
    try:
        client = AdminClient({**librdkafka_options(topic, settings, os.environ), "log_level": 0})
        found = client.list_topics(topic.topic, timeout=BROKER_TIMEOUT).topics[topic.topic]
    except KafkaException as error:
        raise ClickmillError(f"the broker does not name the partitions of topic {topic.topic}: {error}") from error
    if found.error is not None:
        raise ClickmillError(f"the broker does not name the partitions of topic {topic.topic}: {found.error}")
    return sorted(found.partitions)


def lost_records(reason: str, topic: KafkaTopic) -> str | None:
    """In one line, what Spark says of records that are gone; none if it is about something else."""
    if not _LOST.search(reason):
        return None
    found = _UNREAD.search(reason)
    return (
        f"records of topic {topic.topic} were removed before they were read ({found[0] if found else 'not said'}); "
        "they are lost: to go on without them, set fail_on_data_loss = false in the source's kafka table"
    )

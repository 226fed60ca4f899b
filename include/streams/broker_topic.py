"""A source's topic as its broker has it now: which one it is, its partitions, and the offsets in them."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # it is there

from include.errors import ClickmillError
from include.settings import Settings
from include.sources import KafkaTopic
from include.streams.kafka import librdkafka_options

T = TypeVar("T")

#: How long the broker is given for an answer, in seconds; it may be restarting.
PATIENCE = 15.0
#: What is read of a topic, by all readers, unless its options say otherwise: no record of an aborted transaction.
ISOLATION = {"isolation.level": "read_committed"}
#: The id of a topic whose broker has none (KIP-516: Kafka before 2.8).
NO_ID = ""


@dataclass(frozen=True)
class BrokerTopic:
    """A topic at its broker, reached with these options of librdkafka."""

    name: str
    options: Mapping[str, str]
    admin: AdminClient
    #: What the client has said last beside its answers, such as that a password is wrong.
    errors: deque[KafkaError]

    @classmethod
    def of(cls, topic: KafkaTopic, settings: Settings) -> BrokerTopic:
        """The topic, of which nothing is asked yet."""
        return cls.reached(topic.topic, options_of(topic, settings))

    @classmethod
    def reached(cls, name: str, options: Mapping[str, str]) -> BrokerTopic:
        """The topic of this name, by ``options_of``."""
        errors: deque[KafkaError] = deque(maxlen=1)
        known: dict[str, Any] = {**options, "log_level": 0, "error_cb": errors.append}
        return cls(name, options, AdminClient(known), errors)

    def asked(self, question: Callable[[], T], patience: float = PATIENCE) -> T:
        """The answer to a question of this class, asked again as long as the broker may be restarting.

        Raises:
            ClickmillError: if it does not answer.
        """
        deadline = time.monotonic() + patience
        while True:
            try:
                return question()
            except KafkaException as error:
                # It may be of a moment: a partition whose leader is being chosen, a broker that restarts.
                if time.monotonic() > deadline:
                    self.admin.poll(0.1)
                    reasons = dict.fromkeys(reason.str() for reason in [error.args[0], *self.errors])
                    raise ClickmillError(
                        f"the broker of topic {self.name} ({self.options['bootstrap.servers']}) does not answer: "
                        f"{'; '.join(reasons)}"
                    ) from None
                time.sleep(0.5)

    def described(self) -> tuple[str, list[int]]:
        """The topic's id, another one for each topic that was ever made, and its partitions.

        Raises:
            KafkaException: if the broker does not say.
        """
        (answer,) = self.admin.describe_topics(TopicCollection([self.name]), request_timeout=PATIENCE).values()
        topic = answer.result()
        has_id = topic.topic_id.get_most_significant_bits() or topic.topic_id.get_least_significant_bits()
        return str(topic.topic_id) if has_id else NO_ID, sorted(partition.id for partition in topic.partitions)

    def first_after(self, partitions: Iterable[int], milliseconds: int) -> dict[int, int]:
        """Of each partition the offset of its first record from this time on; negative if there is none.

        Raises:
            KafkaException: as above.
        """
        return self._offsets(partitions, OffsetSpec.for_timestamp(milliseconds))

    def bounds(self, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        """Of each partition the offset of its first record, and the one after its last, committed or not.

        Raises:
            KafkaException: as above.
        """
        partitions = list(partitions)
        specs = OffsetSpec.earliest(), OffsetSpec.latest()  # type: ignore[no-untyped-call]
        first, end = (self._offsets(partitions, spec) for spec in specs)
        return {partition: (first[partition], end[partition]) for partition in partitions}

    def first_unread(self, read: Mapping[int, int]) -> dict[int, int]:
        """Of each of these partitions the first offset, from this one on, that has a record, or may get one.

        Markers of transactions, and records of aborted ones, are passed over, as the stream does.

        Raises:
            KafkaException: as above.
        """
        small = {"fetch.wait.max.ms": 10, "queued.min.messages": 1, "max.partition.fetch.bytes": 1 << 16}
        own = {"group.id": "clickmill", "enable.auto.commit": False, "auto.offset.reset": "earliest", "log_level": 0}
        consumer = Consumer({**self.options, **small, **own, "enable.partition.eof": True})
        offsets: dict[int, int] = {}
        deadline = time.monotonic() + PATIENCE
        try:
            consumer.assign([TopicPartition(self.name, partition, offset) for partition, offset in read.items()])
            while len(offsets) < len(read) and time.monotonic() < deadline:
                message = consumer.poll(1.0)
                if message is None:
                    continue
                error = message.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                offsets.setdefault(partition, offset)
        finally:
            consumer.close()
        return {partition: offsets.get(partition, offset) for partition, offset in read.items()}

    def _offsets(self, partitions: Iterable[int], spec: OffsetSpec) -> dict[int, int]:
        asked = {TopicPartition(self.name, partition): spec for partition in partitions}
        if not asked:
            return {}
        answers = self.admin.list_offsets(asked, request_timeout=PATIENCE)
        return {topic_partition.partition: answer.result().offset for topic_partition, answer in answers.items()}


def options_of(topic: KafkaTopic, settings: Settings) -> dict[str, str]:
    """What librdkafka is configured with, secrets filled in from the environment: not to be printed.

    Raises:
        UsageError: naming every variable that an option asks for and that is not set.
    """
    of_reader = {name: topic.options.get(name, value) for name, value in ISOLATION.items()}
    return of_reader | librdkafka_options(topic, settings, os.environ)


def is_same(topic_id: str, other: str) -> bool:
    """Whether these may be the ids of one topic: where a broker has none, the name says it."""
    return topic_id == other or NO_ID in (topic_id, other)


def made_again(name: str, before: str, now: str) -> str:
    """That there is another topic of this name than the one that was read, in a few words."""
    return f"topic {name} is not the one that was read: it was made again (its id was {before} and is {now})"


def cut_off(name: str, read: Mapping[int, int], ends: Mapping[int, int]) -> str | None:
    """That the topic ends before what was read of it, in a few words; None if it does not."""
    cut = [
        f"partition {partition} was read up to offset {offset} and ends at {ends[partition]}"
        for partition, offset in sorted(read.items())
        if partition in ends and offset > ends[partition]
    ]
    return f"topic {name} has lost records that were read ({', '.join(cut)})" if cut else None


def next_offsets(batches: Iterable[Mapping[str, Any]], topic_id: str) -> dict[int, int]:
    """For each partition of this topic the offset after the last one that is in the lake.

    ``batches`` are rows of ``stream_batches``. Where a checkpoint was begun again after the topic had lost records,
    offsets have begun again too: of a partition the stream that has written last says how far it is.
    """
    newest: dict[int, dict[str, tuple[Any, int]]] = {}
    for row in batches:
        # A replay's rows say nothing of how far a stream is, and have no id of a topic.
        if row["topic_id"] is not None and is_same(row["topic_id"], topic_id):
            streams = newest.setdefault(row["partition"], {})
            written_at, offset = streams.get(row["stream_id"], (row["written_at"], -1))
            streams[row["stream_id"]] = max(written_at, row["written_at"]), max(offset, row["last_offset"])
    return {partition: max(streams.values())[1] + 1 for partition, streams in newest.items()}

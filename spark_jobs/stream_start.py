"""From where a stream goes on whose checkpoint is gone: the batches in its lake say what has been read."""

from __future__ import annotations

import json
import os

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable

from include.errors import ClickmillError
from include.kafka import librdkafka_options, topic_of
from include.settings import Settings
from include.sources import KafkaTopic, Source
from include.tables import CLICKS, QUARANTINED_CLICKS, STREAM_BATCHES
from spark_jobs.io import Lake

#: Spark's word for the first record of a partition that is still there.
EARLIEST = -2
BROKER_TIMEOUT = 30.0


def offsets_after_batches(lake: Lake, source: Source, new_stream_id: str) -> str | None:
    """Spark's startingOffsets after the last record of each partition that is in the lake; None if none is.

    A partition of which the lake has no record is read from its beginning.

    Raises:
        ClickmillError: if the checkpoint was lost in the middle of a batch or not as a whole, or the broker does not
            name the partitions.
    """
    topic = topic_of(source)
    columns = ("stream_id", "batch_id", "partition", "last_offset")
    rows = lake.read_rows(STREAM_BATCHES, columns, [("source", "=", source.name), ("topic", "=", topic.topic)])
    if not rows:
        return None
    last_batches: dict[str, int] = {}
    next_offsets = dict.fromkeys(partitions_of(topic, lake.settings), EARLIEST)
    for row in rows:
        stream_id, partition = row["stream_id"], row["partition"]
        last_batches[stream_id] = max(row["batch_id"], last_batches.get(stream_id, 0))
        if partition in next_offsets:
            next_offsets[partition] = max(row["last_offset"] + 1, next_offsets[partition])
    if new_stream_id in last_batches:
        raise ClickmillError(
            f"the checkpoint of {source.name} has lost its offsets but kept its stream_id {new_stream_id}: the tables "
            "would take its next batches for those that they have; remove its folder as a whole"
        )
    for stream_id, last_batch in last_batches.items():
        _require_whole_batches(lake, stream_id, last_batch)
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


def _require_whole_batches(lake: Lake, stream_id: str, last_batch: int) -> None:
    """See that no table has rows of a batch that ``stream_batches``, which is written last, does not have."""
    for table in (CLICKS, QUARANTINED_CLICKS):
        stored = DeltaTable(lake.path(table)).transaction_version(stream_id) if lake.exists(table) else None
        if stored is not None and stored > last_batch:
            raise ClickmillError(
                f"table {table.name} has rows of batch {stored} of stream {stream_id}, which had not ended when its "
                "checkpoint was removed: they would be read twice; bring the checkpoint back, or restore the table to "
                "the version before them"
            )

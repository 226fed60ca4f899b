"""How far a stream has read its topic; methods as of ``files_position.FilesPosition``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from include.hours import Hour
from include.landing import LandedHour
from include.settings import Settings
from include.sources import Source
from include.stored_rows import StoredLake
from include.streams.broker_topic import BrokerTopic, cut_off, made_again, next_offsets
from include.streams.kafka import topic_of
from include.tables import STREAM_BATCHES

_COLUMNS = ("stream_id", "topic_id", "partition", "last_offset", "written_at")


@dataclass(frozen=True)
class TopicPosition:
    """The partitions of a source's topic: read up to the offset after the last one that is in the lake."""

    settings: Settings
    source: Source

    def read_hours(self, log_hours: Sequence[Hour], now: datetime) -> set[Hour]:
        """Those of these hours that are over, and of which all records that are in the topic are read.

        None, and why is printed, if the topic is not the one that was read.

        Raises:
            ClickmillError: if the broker does not answer.
        """
        over = [hour for hour in log_hours if now >= hour.end]
        if not over:
            return set()
        batches = self._batches()
        topic = BrokerTopic.of(topic_of(self.source), self.settings)
        return topic.asked(lambda: self._read_hours(topic, over, batches))

    def unread_files(self, log_hour: Hour) -> list[str]:
        """A topic has none."""
        return []

    def landed(self, log_hour: Hour, batches: Sequence[Mapping[str, Any]]) -> LandedHour:
        """The hour as if it were a landing partition with a file for each partition of the topic.

        ``batches`` are its rows of ``stream_batches``; ``is_closed`` is left to ``read_hours``.
        """
        # A source may have been streamed from another topic before, or from files.
        partitions = sorted({(row["topic"], row["partition"]) for row in batches if row["topic"] is not None})
        return LandedHour(
            folder=Path(topic_of(self.source).topic),
            hour=log_hour,
            files=tuple(Path(topic, str(partition)) for topic, partition in partitions),
            size_bytes=sum(row["bytes"] for row in batches),
            is_closed=False,
        )

    def _batches(self) -> list[dict[str, Any]]:
        """What is in the lake of the topic of this name, a row for each stream, topic's id and partition."""
        of_topic = [("source", "=", self.source.name), ("topic", "=", topic_of(self.source).topic)]
        rows = StoredLake(self.settings.lake).read_table(STREAM_BATCHES, _COLUMNS, of_topic)
        newest = rows.group_by(list(_COLUMNS[:3])).aggregate([("last_offset", "max"), ("written_at", "max")])
        batches: list[dict[str, Any]] = newest.rename_columns(list(_COLUMNS)).to_pylist()
        return batches

    def _read_hours(self, topic: BrokerTopic, hours: Sequence[Hour], batches: list[dict[str, Any]]) -> set[Hour]:
        _, partitions = topic.described()
        # What an hour needs is asked before where the topic ends: what comes in between may be of that hour.
        after = {hour: topic.first_after(partitions, int(hour.end.timestamp() * 1000)) for hour in hours}
        bounds = topic.bounds(partitions)
        # Asked last: what was said before is of this topic, or of one before it.
        topic_id, _ = topic.described()
        read = next_offsets(batches, topic_id)
        others = sorted({row["topic_id"] for row in batches if row["topic_id"] is not None})
        refused = cut_off(topic.name, read, {partition: end for partition, (_, end) in bounds.items()})
        if others and not read:
            refused = f"{made_again(topic.name, others[-1], topic_id)}, and nothing of the new one is read"
        if refused:
            print(f"no hour of {self.source.name} counts as read: {refused}", file=sys.stderr, flush=True)
            return set()
        needed = {hour: _needed(offsets, bounds) for hour, offsets in after.items()}
        behind = {
            partition: read.get(partition, 0)
            for partition in partitions
            if any(read.get(partition, 0) < offsets[partition] for offsets in needed.values())
        }
        if behind:
            read |= topic.first_unread(behind)
        return {
            hour
            for hour, offsets in needed.items()
            if all(read.get(partition, 0) >= offset for partition, offset in offsets.items())
        }


def _needed(after: Mapping[int, int], bounds: Mapping[int, tuple[int, int]]) -> dict[int, int]:
    """For each partition the offset of the first record after an hour, or of its end; 0 if none is before."""
    needed = {partition: after[partition] if after[partition] >= 0 else end for partition, (_, end) in bounds.items()}
    return {partition: offset if offset > bounds[partition][0] else 0 for partition, offset in needed.items()}

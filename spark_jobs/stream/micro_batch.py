"""What is done with each micro-batch of a stream: its clicks, its quarantined lines and the account of every line.

Runs on the Spark server, in a worker that imports this module. A batch that broke off is run again on the same
lines, and whatever it had written is left out: each table takes the rows of a batch once. The batch's row in
``stream_batches`` is written last: it says that the batch is in the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from include.hours import Hour, log_hour_of
from include.settings import Settings
from include.sources import Source, stream_of
from include.tables import CLICKS, QUARANTINED_CLICKS, STREAM_BATCHES
from spark_jobs.engine.session import configure
from spark_jobs.engine.steps import in_parallel, step
from spark_jobs.hours.account import HourAccount
from spark_jobs.hours.stream_batches import in_order_of_time
from spark_jobs.ids.first_arrivals import BatchIds
from spark_jobs.ids.id_manifest import IdManifest
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.transactions import StreamTransaction
from spark_jobs.lines.sampled_lines import fields_of
from spark_jobs.stream.id_folder import StreamIds
from spark_jobs.stream.ids_of_clicks import version_without, with_ids_of_clicks
from spark_jobs.stream.topic import ReadTopic
from spark_jobs.stream.written_rows import WrittenRows, write_rows


@dataclass
class PartOfBatch:
    """What a micro-batch has of one file, or topic partition, and log hour; the counts of ``stream_batches``.

    ``account`` has all lines that were read, and what became of those that are no duplicates.
    """

    bytes: int = 0
    damage: str | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    account: HourAccount = field(default_factory=HourAccount)

    def add(self, row: Mapping[str, Any], log_hour: Hour) -> None:
        """Count the lines of one outcome: a row of ``OUTCOMES``."""
        if row["is_read"]:
            self.account.lines += row["lines"]
            self.bytes += row["bytes"]
            self.damage = max(filter(None, (self.damage, row["damage"])), default=None)
            self.first_offset = min(_known(self.first_offset, row["first_offset"]), default=None)
            self.last_offset = max(_known(self.last_offset, row["last_offset"]), default=None)
        else:
            self.account.add_outcome(row, log_hour)


@dataclass(frozen=True)
class StreamIngest:
    """The work on the micro-batches of one source's stream; what follows the source is of its checkpoint."""

    settings: Settings
    source: Source
    stream_id: str
    #: None where duplicates cannot be known.
    ids: StreamIds | None
    #: None of landed files.
    topic: ReadTopic | None = None

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Write one micro-batch: arrivals less duplicates, and what was read."""
        lake = Lake(configure(rows.sparkSession), self.settings)
        transaction = StreamTransaction(self.stream_id, batch_id)
        ids = self.ids.before(batch_id, partial(self._of_clicks, lake, batch_id)) if self.ids else None
        batch = MicroBatch(lake, self.source, transaction, rows, ids, self.topic)
        written = batch.write()
        parts = parts_of(written)
        if parts:
            with in_order_of_time(lake) as now:
                lake.append_rows(STREAM_BATCHES, self._account(parts, batch_id, now), transaction)
        if self.ids and ids:
            self.ids.keep(batch_id, ids, written.ids)

    def _of_clicks(self, lake: Lake, batch_id: int, known: IdManifest) -> IdManifest:
        """What was known before this micro-batch, and what ``clicks`` then had."""
        assert self.ids is not None
        version = version_without(lake, self.stream_id, batch_id - 1)
        return with_ids_of_clicks(lake, self.source.name, known, self.ids.folder, self.ids.partitions, version)

    def _account(
        self, parts: dict[tuple[str, Hour], PartOfBatch], batch_id: int, now: datetime
    ) -> list[dict[str, Any]]:
        stream = stream_of(self.source)
        return [
            {
                "source": self.source.name,
                "stream_id": self.stream_id,
                "batch_id": batch_id,
                "file": file,
                **stream.partition_of(file),
                "topic_id": self.topic.topic_id if self.topic else None,
                "log_date": log_hour.day,
                "log_hour": log_hour.hour,
                "first_offset": part.first_offset,
                "last_offset": part.last_offset,
                "bytes": part.bytes,
                "damage": part.damage,
                **part.account.of_lines(),
                "written_at": now,
            }
            for (file, log_hour), part in sorted(parts.items())
        ]


@dataclass(frozen=True)
class MicroBatch:
    """A micro-batch on its way into ``clicks`` and ``quarantined_clicks``."""

    lake: Lake
    source: Source
    transaction: StreamTransaction
    rows: DataFrame
    ids: BatchIds | None
    topic: ReadTopic | None

    def write(self) -> WrittenRows:
        """Write its rows.

        Raises:
            ClickmillError: if they may be another topic's.
        """
        clicks, quarantined = map(self.lake.folder_for_files, (CLICKS, QUARANTINED_CLICKS))
        with step(self.lake.spark, "write micro-batch"):
            written = write_rows(self.rows, self.source, clicks, quarantined, self.ids)
        if self.topic:
            # Here, as the topic may be another one since the batch began.
            self.topic.require(self.transaction.batch_id)
        in_parallel(
            self.lake.spark,
            *(
                partial(self.lake.append, table, files, self.transaction)
                for table, files in ((CLICKS, written.clicks), (QUARANTINED_CLICKS, written.quarantined))
                if files
            ),
        )
        return written


def parts_of(written: WrittenRows) -> dict[tuple[str, Hour], PartOfBatch]:
    """What was written, and of which fields, by file, or topic partition, and log hour."""
    parts: dict[tuple[str, Hour], PartOfBatch] = {}
    for row in written.outcomes:
        place = _place(row)
        parts.setdefault(place, PartOfBatch()).add(row, place[1])
    for row in written.sampled:
        parts[_place(row)].account.add_sampled(fields_of(row))
    return parts


def _place(row: Mapping[str, Any]) -> tuple[str, Hour]:
    return row["file"], log_hour_of(row)


def _known(*offsets: int | None) -> list[int]:
    return [offset for offset in offsets if offset is not None]

"""Count the streamed clicks of a source per minute and hour while they come, into the live tables.

Reads ``clicks``, so that a click is counted live exactly when it is a click, and once. The clicks of each micro-batch
are partitioned as ``config/pipeline.toml`` says for the key, as those of the hourly counts are.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from include.counting import CountKey, count_table, live_count_table
from include.settings import Settings
from include.sources import Source
from include.tables import CLICKS
from spark_jobs.aggregate.groupings import FifoGrouping, grouping_of
from spark_jobs.engine.column_functions import let
from spark_jobs.engine.session import configure
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.transactions import StreamTransaction
from spark_jobs.stream.checkpoint import StreamCheckpoint
from spark_jobs.stream.fence import FencedWork
from spark_jobs.stream.live_counts import count_live, load_of_batch, repartition_live
from spark_jobs.stream.writer import start_writer

#: The name of what is observed in each micro-batch: ``load_of_batch``.
OBSERVED = "clicks"


@dataclass(frozen=True)
class LiveUpdate:
    """What is done with each micro-batch of counts: its rows replace those of the same window and key."""

    settings: Settings
    key: CountKey
    stream_id: str

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Merge one micro-batch: a batch that is tried again says the same once more, an overtaken one nothing."""
        lake = Lake(configure(rows.sparkSession), self.settings)
        # A moment as it is would be other generated code for each micro-batch.
        now = let(F.lit(True), lambda _: F.lit(datetime.now(UTC)))
        counts = rows.withColumn("counted_at", now)
        lake.merge_click_hours(live_count_table(self.key), counts, StreamTransaction(self.stream_id, batch_id))


def start(
    spark: SparkSession, settings: Settings, source: Source, key: CountKey, *, available_now: bool = False
) -> StreamingQuery:
    """Start the live counts by one key where they left off; the caller holds ``StreamCheckpoint.owned``."""
    live = settings.pipeline.live
    lake = Lake(spark, settings)
    checkpoint = StreamCheckpoint.of(settings, source.name, key)
    if not checkpoint.has_begun():
        # Its micro-batches are numbered from 0 again.
        checkpoint.forget_stream_id()
    clicks = lake.read_stream(CLICKS, begins=not checkpoint.has_begun()).where(F.col("source") == source.name)
    configured = grouping_of(settings.pipeline.counts[key], key, lake.buckets(count_table(key)))
    # The state adds up what each task has counted: to combine, the clicks are left where they are read.
    grouping = FifoGrouping() if configured.combines else configured
    partitioned = repartition_live(clicks, key, grouping).observe(OBSERVED, *load_of_batch(grouping))
    counts = count_live(partitioned, key, live.watermark_minutes)
    return start_writer(
        spark,
        counts.writeStream.outputMode("update").queryName(f"live {key} {source.name}"),
        FencedWork(LiveUpdate(settings, key, checkpoint.stream_id()), checkpoint.fence()),
        checkpoint,
        state_partitions=live.state_partitions,
        trigger_seconds=None if available_now else live.trigger_seconds,
    )

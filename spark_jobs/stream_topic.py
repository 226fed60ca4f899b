"""The query that reads a topic into ``clicks``: its source, what each micro-batch consists of, and where it begins."""

from __future__ import annotations

import os

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from include.kafka import spark_options, topic_of
from include.settings import Settings
from include.sources import KafkaTopic, Source
from spark_jobs.io import Lake
from spark_jobs.stream_checkpoint import StreamCheckpoint
from spark_jobs.stream_ingest import StreamIngest
from spark_jobs.stream_start import offsets_after_batches
from spark_jobs.stream_writer import start_writer
from spark_jobs.transforms.parse_lines import parse_lines
from spark_jobs.transforms.stream_lines import first_arrivals, lines_of_records, with_line_counts


def read_records(spark: SparkSession, topic: KafkaTopic, settings: Settings, starting_offsets: str) -> DataFrame:
    """The topic's records, as Spark's Kafka source has them, from these offsets on where no checkpoint says more."""
    options = {f"kafka.{name}": value for name, value in spark_options(topic, settings, os.environ).items()}
    return (
        spark.readStream.format("kafka")
        .options(**options)
        .option("subscribe", topic.topic)
        .option("startingOffsets", starting_offsets)
        .option("failOnDataLoss", topic.fail_on_data_loss)
        .option("maxOffsetsPerTrigger", topic.max_rows_per_batch)
        .load()
    )


def stream_rows(records: DataFrame, source: Source, settings: Settings) -> DataFrame:
    """What each micro-batch consists of: parsed lines less their duplicates, and the lines to be accounted for."""
    lines = lines_of_records(records)
    arrivals = parse_lines(lines, source, settings.pipeline.tracking_parameters)
    if source.has_event_id:
        arrivals = first_arrivals(arrivals, source.lateness_hours)
    return with_line_counts(arrivals, lines)


def start(spark: SparkSession, settings: Settings, source: Source, *, available_now: bool = False) -> StreamingQuery:
    """Start the source's stream where it left off; the caller holds ``StreamCheckpoint.owned``.

    Without a checkpoint, where the batches in the lake end. A stream whose client has been killed lives on in the Spark
    server: Spark stops it here (spark.sql.streaming.stopActiveRunOnRestart), and the new one goes on.

    Raises:
        ClickmillError: if the broker is not known, or the lake does not tell where to go on.
    """
    topic = topic_of(source)
    checkpoint = StreamCheckpoint.of(settings, source.name)
    stream_id = checkpoint.stream_id()
    starting_offsets: str = topic.starting_offsets
    if not checkpoint.has_begun():
        after_batches = offsets_after_batches(Lake(spark, settings), source, stream_id)
        if after_batches is not None:
            starting_offsets = after_batches
            print(
                f"the stream of {source.name} has no checkpoint: it goes on after the batches in the lake, and does "
                "not know duplicates of their clicks",
                flush=True,
            )
    rows = stream_rows(read_records(spark, topic, settings, starting_offsets), source, settings)
    writer = rows.writeStream.foreachBatch(StreamIngest(settings, source, stream_id))
    return start_writer(
        spark,
        writer.queryName(f"clicks {source.name}"),
        checkpoint.folder,
        state_partitions=topic.state_partitions,
        trigger_seconds=None if available_now else topic.trigger_seconds,
    )

"""The query that reads a source's lines into ``clicks``: what each micro-batch consists of, and where it begins."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from include.settings import Settings
from include.sources import Source, stream_of
from spark_jobs.lake.lake import Lake
from spark_jobs.stream.checkpoint import StreamCheckpoint
from spark_jobs.stream.duplicates import first_arrivals
from spark_jobs.stream.input import input_of
from spark_jobs.stream.micro_batch import StreamIngest
from spark_jobs.stream.resume import StreamStart
from spark_jobs.stream.writer import start_writer


def start(spark: SparkSession, settings: Settings, source: Source, *, available_now: bool = False) -> StreamingQuery:
    """Start the source's stream where it left off; the caller holds ``StreamCheckpoint.owned``.

    Without a checkpoint, where the batches in the lake end. A stream whose client has been killed lives on in the Spark
    server: Spark stops it here (spark.sql.streaming.stopActiveRunOnRestart), and the new one goes on.

    Raises:
        ClickmillError: if the broker is not known, or the lake does not say where to go on.
    """
    stream = stream_of(source)
    checkpoint = StreamCheckpoint.of(settings, source.name)
    stream_id = checkpoint.stream_id()
    rows = input_of(spark, settings, source).arrivals(StreamStart(Lake(spark, settings), checkpoint, stream_id))
    if source.has_event_id:
        rows = first_arrivals(rows, source.lateness_hours)
    return start_writer(
        spark,
        rows.writeStream.queryName(f"clicks {source.name}"),
        StreamIngest(settings, source, stream_id),
        checkpoint,
        state_partitions=stream.state_partitions,
        most_row_bytes=source.max_line_bytes,
        trigger_seconds=None if available_now else stream.trigger_seconds,
    )

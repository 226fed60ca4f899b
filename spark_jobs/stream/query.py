"""The query that reads a source's lines into ``clicks``: what each micro-batch consists of, and where it begins."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from include.settings import Settings
from include.sources import Source, stream_of
from spark_jobs.ids.partitions import repartition_by_id
from spark_jobs.lake.lake import Lake
from spark_jobs.lines.parse_lines import most_line_bytes
from spark_jobs.stream.checkpoint import StreamCheckpoint
from spark_jobs.stream.fence import FencedWork
from spark_jobs.stream.files import FilesInput
from spark_jobs.stream.id_folder import IdFolder
from spark_jobs.stream.micro_batch import StreamIngest
from spark_jobs.stream.resume import StreamStart
from spark_jobs.stream.topic import TopicInput
from spark_jobs.stream.writer import start_writer

#: So many rows at a time go to Python that they fit into so many bytes, and no more than Spark's default.
_BATCH_BYTES, _MOST_BATCH_ROWS = 128 << 20, 10_000


def input_of(spark: SparkSession, settings: Settings, source: Source) -> FilesInput | TopicInput:
    """What a streamed source is read from: landed files, or a topic."""
    return FilesInput(spark, settings, source) if source.files is not None else TopicInput(spark, settings, source)


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
    stream_input = input_of(spark, settings, source)
    lake = Lake(spark, settings)
    rows = stream_input.arrivals(StreamStart(lake, checkpoint, stream_id))
    topic = stream_input.read_topic(checkpoint) if isinstance(stream_input, TopicInput) else None
    # What is known is looked at when no other query may begin a micro-batch.
    fence = checkpoint.fence()
    ids = IdFolder(checkpoint).made_ready(lake, source, stream_id)
    if ids:
        rows = repartition_by_id(rows, ids.partitions)
    batch_rows = max(1, min(_MOST_BATCH_ROWS, _BATCH_BYTES // most_line_bytes(source)))
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", batch_rows)
    return start_writer(
        spark,
        rows.writeStream.queryName(f"clicks {source.name}"),
        FencedWork(StreamIngest(settings, source, stream_id, ids, topic), fence),
        checkpoint,
        state_partitions=stream.state_partitions,
        trigger_seconds=None if available_now else stream.trigger_seconds,
    )

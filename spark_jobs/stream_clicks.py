"""Stream a source's topic into clicks, quarantined_clicks and stream_batches, each record exactly once.

Goes on where it was, whatever ended it. With --available-now it ends when all that was in the topic at its start is
read; without, it goes on until it is told to end (Ctrl-C, or SIGTERM).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from include.errors import ClickmillError
from include.job_arguments import OneLineParser, exit_with
from include.kafka import client_options, topic_of
from include.settings import Settings
from include.sources import KafkaTopic, Source, choose_sources
from spark_jobs.io import Lake
from spark_jobs.session import spark_session
from spark_jobs.stream_checkpoint import StreamCheckpoint
from spark_jobs.stream_failure import failure_of
from spark_jobs.stream_ingest import StreamIngest
from spark_jobs.stream_start import offsets_after_batches
from spark_jobs.transforms.parse_lines import parse_lines
from spark_jobs.transforms.stream_lines import first_arrivals, lines_of_records, with_line_counts

#: How long a stop waits for the batch that is being worked on, in seconds.
STOP_TIMEOUT = 60


#: What the stream's session needs besides what every job relies on.
STREAM_CONF = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # A batch's changes are uploaded, not all files of the state.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # It would refuse to sort a micro-batch before the state looks at it: see first_arrivals.
    "spark.sql.streaming.unsupportedOperationCheck": "false",
}


def read_records(spark: SparkSession, topic: KafkaTopic, settings: Settings, starting_offsets: str) -> DataFrame:
    """The topic's records, as Spark's Kafka source has them, from these offsets on where no checkpoint says more."""
    options = {f"kafka.{name}": value for name, value in client_options(topic, settings, os.environ).items()}
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
    for name, value in STREAM_CONF.items():
        spark.conf.set(name, value)
    spark.conf.set("spark.sql.shuffle.partitions", topic.state_partitions)
    rows = stream_rows(read_records(spark, topic, settings, starting_offsets), source, settings)
    writer = (
        rows.writeStream.queryName(f"stream_clicks {source.name}")
        .foreachBatch(StreamIngest(settings, source, stream_id))
        .option("checkpointLocation", str(checkpoint.folder))
        .outputMode("append")
    )
    if available_now:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{topic.trigger_seconds} seconds").start()


def run(spark: SparkSession, settings: Settings, source: Source, *, available_now: bool) -> None:
    """Stream until all that is there is read, or until told to end.

    Raises:
        StreamRunsAlreadyError: if the source's stream runs already.
        ClickmillError: if the stream fails.
    """
    with StreamCheckpoint.of(settings, source.name).owned(), _loss_of_server_told(source):
        query = start(spark, settings, source, available_now=available_now)
        print(f"the stream of {source.name} runs", flush=True)
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            raise ClickmillError(
                f"the stream of {source.name} failed: {failure_of(str(error), topic_of(source))}"
            ) from error
        finally:
            query.stop()


@contextmanager
def _loss_of_server_told(source: Source) -> Iterator[None]:
    """A server that ends takes its queries with it: all that is asked of one then fails, its end too."""
    try:
        yield
    except PySparkException as error:
        raise ClickmillError(
            f"the stream of {source.name} broke off, its Spark server has failed or ended: "
            f"{str(error).splitlines()[0]}; start it again: it goes on where it was"
        ) from error


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Run from the shell."""
    parser = OneLineParser(prog="python -m spark_jobs.stream_clicks", description=__doc__)
    parser.add_argument("--source", required=True, help="a source of config/sources.toml that has a topic")
    parser.add_argument("--available-now", action="store_true", help="read what is there, then end")
    given = parser.parse_args()
    settings = Settings.from_environment()
    (source,) = choose_sources(settings, given.source)
    topic_of(source)
    signal.signal(signal.SIGTERM, _interrupt)
    with spark_session(settings) as spark:
        try:
            run(spark, settings, source, available_now=given.available_now)
        except KeyboardInterrupt:
            print(f"the stream of {source.name} has been told to end")


if __name__ == "__main__":
    exit_with(main)

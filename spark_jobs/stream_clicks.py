"""Stream a source's topic into clicks, quarantined_clicks and stream_batches, each record exactly once.

Goes on where it was, whatever ended it. With --available-now it ends when all that was in the topic at its start is
read; without, it goes on until it is told to end (Ctrl-C, or SIGTERM).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from include.errors import ClickmillError
from include.job_arguments import OneLineParser, exit_with
from include.kafka import client_options, topic_of
from include.settings import Settings
from include.sources import KafkaTopic, Source, choose_sources
from include.stream_supervision import say_alive
from spark_jobs import stream_live
from spark_jobs.io import Lake
from spark_jobs.session import spark_session
from spark_jobs.stream_checkpoint import StreamCheckpoint
from spark_jobs.stream_ingest import StreamIngest
from spark_jobs.stream_progress import ProgressLog, keep
from spark_jobs.stream_start import offsets_after_batches
from spark_jobs.stream_writer import start_writer
from spark_jobs.transforms.parse_lines import parse_lines
from spark_jobs.transforms.stream_lines import first_arrivals, lines_of_records, with_line_counts

#: How often the queries are asked what they have done.
POLL_SECONDS = 1.0


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
    starting_offsets: str = topic.starting_offsets
    if not checkpoint.has_begun():
        after_batches = offsets_after_batches(Lake(spark, settings), source)
        if after_batches is not None:
            starting_offsets = after_batches
            print(
                f"the stream of {source.name} has no checkpoint: it goes on after the batches in the lake, and does "
                "not know duplicates of their clicks",
                flush=True,
            )
    rows = stream_rows(read_records(spark, topic, settings, starting_offsets), source, settings)
    writer = rows.writeStream.foreachBatch(StreamIngest(settings, source, checkpoint.stream_id()))
    return start_writer(
        spark,
        writer.queryName(f"clicks {source.name}"),
        checkpoint.folder,
        state_partitions=topic.state_partitions,
        trigger_seconds=None if available_now else topic.trigger_seconds,
    )


def run(
    spark: SparkSession,
    settings: Settings,
    source: Source,
    *,
    available_now: bool,
    live: bool = True,
) -> None:
    """Stream until all that is there is read, or until told to end.

    ``live`` says whether the clicks are counted live as well.

    Raises:
        StreamRunsAlreadyError: if the source's stream runs already.
        ClickmillError: if the stream fails.
    """
    lake = Lake(spark, settings)
    owned = StreamCheckpoint.of(settings, source.name).owned()
    with owned, _loss_of_server_told(source), _stopped_at_the_end() as logs:
        logs.append(ProgressLog(source.name, "clicks", start(spark, settings, source, available_now=available_now)))
        print(f"the stream of {source.name} runs", flush=True)
        if available_now:
            _follow(lake, logs)
        if live:
            for key in settings.pipeline.counts:
                query = stream_live.start(spark, settings, source, key, available_now=available_now)
                logs.append(ProgressLog(source.name, key, query))
        _follow(lake, logs)


@contextmanager
def _stopped_at_the_end() -> Iterator[list[ProgressLog]]:
    logs: list[ProgressLog] = []
    try:
        yield logs
    finally:
        for log in logs:
            log.handle.stop()


def _follow(lake: Lake, logs: Sequence[ProgressLog]) -> None:
    """Keep the queries' progress, and say that this process lives, until they have ended.

    Raises:
        ClickmillError: if one of them fails.
    """
    while True:
        running = [log for log in logs if log.handle.isActive]
        rows = [row for log in logs for row in log.new_rows()]
        if rows:
            keep(lake, rows)
        say_alive(lake.settings, logs[0].source, logs[0].lag)
        for log in logs:
            if error := log.handle.exception():
                said = str(error).strip().splitlines()
                raise ClickmillError(f"the stream of {log.source} ({log.query}) failed: {said[0]}")
        if not running:
            return
        time.sleep(POLL_SECONDS)


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
    parser.add_argument("--no-live", action="store_true", help="leave out the live counts")
    given = parser.parse_args()
    settings = Settings.from_environment()
    (source,) = choose_sources(settings, given.source)
    topic_of(source)
    signal.signal(signal.SIGTERM, _interrupt)
    with spark_session(settings) as spark:
        try:
            run(spark, settings, source, available_now=given.available_now, live=not given.no_live)
        except KeyboardInterrupt:
            print(f"the stream of {source.name} has been told to end")


if __name__ == "__main__":
    exit_with(main)

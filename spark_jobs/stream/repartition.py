"""The state of a stream over another number of partitions."""

from __future__ import annotations

import os
from collections.abc import Iterator

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from include.errors import ClickmillError
from include.settings import Settings
from include.sources import Source
from spark_jobs.stream.checkpoint import StreamCheckpoint
from spark_jobs.stream.writer import STREAM_CONF

MOST_PARTITIONS = 1024


def repartition(settings: Settings, source: Source, partitions: int) -> list[str]:
    """Repartition the state of a source's live counts; returns what was done, a line for each key.

    A Spark of its own does it, in this process: the server's clients cannot ask for it, and no table is touched.

    Raises:
        StreamRunsAlreadyError: if the stream runs.
        ClickmillError: if a query's last micro-batch has not ended, or Spark cannot repartition its state.
    """
    checkpoints = {name: checkpoint for name, checkpoint in _checkpoints(settings, source) if checkpoint.has_begun()}
    if not checkpoints:
        raise ClickmillError(
            f"the stream of {source.name} has no live counts yet; set state_partitions in config/pipeline.toml"
        )
    done = []
    with StreamCheckpoint.of(settings, source.name).owned(settings):
        for name, checkpoint in checkpoints.items():
            if not checkpoint.is_whole():
                raise ClickmillError(
                    f"the last micro-batch of {source.name} ({name}) has not ended; end it first: "
                    f"clickmill stream --source {source.name} --available-now"
                )
        spark = _own_spark()
        try:
            for name, checkpoint in checkpoints.items():
                before = checkpoint.state_partitions()
                if before == partitions:
                    done.append(f"{source.name} {name}: has {partitions} state partitions already")
                    continue
                try:
                    spark._streamingCheckpointManager.repartition(str(checkpoint.folder), partitions)
                except Py4JJavaError as error:
                    raise ClickmillError(
                        f"the state of {source.name} ({name}) cannot be repartitioned: "
                        f"{str(error.java_exception).splitlines()[0]}; to replay it instead, remove {checkpoint.folder}"
                    ) from error
                done.append(f"{source.name} {name}: {partitions} state partitions instead of {before}")
        finally:
            spark.stop()
    return done


def _checkpoints(settings: Settings, source: Source) -> Iterator[tuple[str, StreamCheckpoint]]:
    for key in settings.pipeline.counts:
        yield key, StreamCheckpoint.of(settings, source.name, key)


def _own_spark() -> SparkSession:
    # In the JVM, not by Spark Connect.
    for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_CONF_DIR", "LOG4J_CONFIGURATION_FILE"):
        os.environ.pop(name, None)
    builder = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
    for name, value in STREAM_CONF.items():
        builder = builder.config(name, value)
    spark = (
        builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    # What keeps account of state is begun with the first look at streams.
    _ = spark.streams.active
    return spark

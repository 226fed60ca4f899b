"""What a stream reads: a topic, or landed files, by one interface."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from include.settings import Settings
from include.sources import Source
from spark_jobs.stream.files import FilesInput
from spark_jobs.stream.resume import StreamStart
from spark_jobs.stream.topic import TopicInput


class StreamInput(Protocol):
    """Where a source's lines come from."""

    def arrivals(self, start: StreamStart) -> DataFrame:
        """The arrivals as they come, and what was read; from where the start says, without a checkpoint.

        Raises:
            ClickmillError: if that cannot be told.
        """

    def explained(self, reason: str) -> str | None:
        """In one line, what Spark says of input that is gone; none if it is about something else."""


def input_of(spark: SparkSession, settings: Settings, source: Source) -> StreamInput:
    """The input of a streamed source."""
    return FilesInput(spark, settings, source) if source.files is not None else TopicInput(spark, settings, source)

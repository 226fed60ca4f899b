"""A Clickmill home whose source web is a topic: stream it, and read the tables back without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from include.sources import Source, load_sources
from tests.stream.kafka_broker import KafkaBroker
from tests.stream.streamed_source import streamed_source
from tests.support.temporary_lake import TemporaryLake


@dataclass
class StreamedLake(TemporaryLake):
    """A home whose source web is a topic of its own."""

    broker: KafkaBroker
    topic: str

    @property
    def source(self) -> Source:
        """The streamed source."""
        return load_sources(self.settings)["web"]

    def configure(self, **kafka: Any) -> None:
        """Declare the source, with these settings of its topic."""
        topic_settings = {"topic": self.topic, "bootstrap_servers": self.broker.bootstrap_servers} | kafka
        self.settings.sources_file.write_text(streamed_source("kafka", topic_settings), encoding="utf-8")

    def read_all(self, *, live: bool = False) -> None:
        """Stream what is in the topic now."""
        from spark_jobs.stream import job as stream_job

        stream_job.stream(self.spark, self.settings, [self.source], available_now=True, live=live)

"""A Clickmill home whose source web is a topic: stream it, and read the tables back without Spark."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from include.sources import Source, load_sources
from tests.jobs.temporary_lake import SOURCES, TemporaryLake
from tests.stream.kafka_broker import KafkaBroker


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(name)} = {_toml(one)}' for name, one in value.items())} }}"
    return json.dumps(value)


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
        given = {"topic": self.topic, "bootstrap_servers": self.broker.bootstrap_servers} | kafka
        listed = "\n".join(f"{name} = {_toml(value)}" for name, value in given.items())
        self.settings.sources_file.write_text(f"{SOURCES}\n[sources.web.kafka]\n{listed}\n", encoding="utf-8")

    def read_all(self, *, live: bool = False) -> None:
        """Stream what is in the topic now."""
        from spark_jobs import stream_clicks

        stream_clicks.run(self.spark, self.settings, [self.source], available_now=True, live=live)

"""A home whose source web is a topic, and the stream on it as a user runs it: a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from deltalake import DeltaTable

from include.settings import REPOSITORY, Settings
from include.sources import Source, load_sources
from include.tables import CLICKS, STREAM_BATCHES, Table
from spark_jobs.stream.checkpoint import StreamCheckpoint
from tests.stream.kafka_broker import KafkaBroker
from tests.stream.streamed_source import streamed_source
from tests.support.temporary_lake import make_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: How long anything may take before a test gives up, in seconds: the machine may be slow.
PATIENCE = 240


@dataclass
class StreamProcess:
    """``clickmill stream``, started."""

    process: subprocess.Popen[str]
    log_file: Path

    @property
    def output(self) -> str:
        """What it has printed, errors too."""
        return self.log_file.read_text(encoding="utf-8")

    @property
    def last_line(self) -> str:
        """The last line that it has printed."""
        return (self.output.splitlines() or [""])[-1]

    def kill(self) -> None:
        """End it by SIGKILL; nothing happens if it has ended."""
        self.process.kill()
        self.process.wait(timeout=60)

    def terminate(self) -> int:
        """Tell it to end, and wait; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Wait until it ends; the exit code."""
        try:
            return self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            # Python says what it is doing, as PYTHONFAULTHANDLER is set.
            self.process.send_signal(signal.SIGABRT)
            self.process.wait(timeout=60)
            raise AssertionError(
                f"the stream did not end within {PATIENCE} s; it said: {self.output[-9000:]}"
            ) from None


@dataclass
class StreamedHome:
    """A home and its topic."""

    settings: Settings
    broker: KafkaBroker
    topic: str = field(default_factory=lambda: f"clicks-{uuid4()}")

    @classmethod
    def in_folder(cls, folder: Path, broker: KafkaBroker, partitions: int = 3, **kafka: Any) -> StreamedHome:
        """A home with no data and a new topic without records."""
        home = cls(make_settings(folder), broker)
        home.configure(**kafka)
        broker.create_topic(home.topic, partitions)
        return home

    @property
    def source(self) -> Source:
        """The streamed source."""
        return load_sources(self.settings)["web"]

    @property
    def checkpoint(self) -> Path:
        """The checkpoint's folder."""
        return StreamCheckpoint.of(self.settings, "web").folder

    def configure(self, **kafka: Any) -> None:
        """Declare the source, with these settings of its topic."""
        topic_settings = {"topic": self.topic, "bootstrap_servers": self.broker.bootstrap_servers} | kafka
        self.settings.sources_file.write_text(streamed_source("kafka", topic_settings), encoding="utf-8")

    def environment(self, remote: str) -> dict[str, str]:
        """That of a job of this home, on the Spark server there."""
        return os.environ | {
            "CLICKMILL_HOME": str(self.settings.home),
            "CLICKMILL_SOURCES": str(self.settings.sources_file),
            "CLICKMILL_PIPELINE": str(self.settings.pipeline_file),
            "SPARK_REMOTE": remote,
            "PYTHONFAULTHANDLER": "1",
        }

    def start_stream(self, remote: str, *options: str) -> StreamProcess:
        """Start the stream on the Spark server there."""
        log_file = self.settings.home / f"stream-{uuid4()}.log"
        with log_file.open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "clickmill", "stream", "--source", "web", "--no-live", *options],
                env=self.environment(remote),
                cwd=REPOSITORY,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                text=True,
            )
        return StreamProcess(process, log_file)

    def read_all(self, remote: str) -> str:
        """Stream what is in the topic now; what the stream printed."""
        stream = self.start_stream(remote, "--available-now")
        assert stream.wait() == 0, stream.output[-4000:]
        return stream.output

    def read_all_in(self, spark: SparkSession) -> None:
        """The same in this process, with its session."""
        from spark_jobs.stream import job as stream_job

        stream_job.stream(spark, self.settings, [self.source], available_now=True, live=False)

    def rows(self, table: Table) -> list[dict[str, Any]]:
        """A table, read by a reader that is not Spark; no rows if it has not been made."""
        path = self.settings.lake / table.name
        if not DeltaTable.is_deltatable(str(path)):
            return []
        rows: list[dict[str, Any]] = DeltaTable(path).to_pyarrow_table().to_pylist()
        return rows

    def event_ids(self) -> list[str]:
        """The event ids of all clicks, sorted."""
        return sorted(row["event_id"] for row in self.rows(CLICKS))

    def begun_batches(self) -> int:
        """How many micro-batches have been begun; Spark forgets the first ones after a hundred."""
        return max((int(file.name) for file in self.checkpoint.glob("offsets/[0-9]*")), default=-1) + 1

    def accepted(self) -> int:
        """How many clicks the accounts of the batches have."""
        return sum(row["accepted"] for row in self.rows(STREAM_BATCHES))


#: Where a line was read: of a topic another place than of landed files.
PLACE = frozenset({"file", "line", "is_out_of_order"})


def multiset(rows: list[dict[str, Any]], left_out: frozenset[str] = frozenset()) -> Counter[str]:
    """Rows in no order, each as often as it is there, without some columns."""
    return Counter(repr({name: value for name, value in row.items() if name not in left_out}) for row in rows)

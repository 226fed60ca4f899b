"""Measure the stream on this machine: clicks a second from Kafka, and how long a click takes to be readable.

Catch-up: ``BENCH_CLICKS`` (1,000,000) clicks are in the topic, then the stream is started and timed to its end, into
clicks alone and with both live counts, by partitions of the topic (``BENCH_PARTITIONS``, 1,2,4,8), after one round that
warms up. Beside it the same records by Kafka Streams, which makes the live counts and nothing else, and by Spark alone,
which writes them as they are. Latency: clicks are produced at parts of that rate for ``BENCH_SECONDS`` (60), and marked
ones among them are looked for by delta-rs until they are there.
"""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psutil
from confluent_kafka import Producer
from deltalake import DeltaTable
from rich.console import Console
from rich.table import Table

from benchmarks import kafka_streams
from benchmarks.figures import record
from benchmarks.spark_watch import SparkWatch
from include.streams.kafka import topic_of
from include.tables import CLICKS, STREAM_BATCHES, STREAM_PROGRESS
from ops.services.start import start
from ops.services.stop import stop
from samples.live_clicks import LiveClicks
from tests.stream.kafka_broker import KafkaBroker
from tests.stream.streamed_lake import StreamedLake
from tests.support.temporary_lake import click, make_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What the ids of clicks begin with whose way is timed.
MARK = "marked-"
console = Console(width=110)


@dataclass(frozen=True)
class CatchUp:
    """How long a backlog took: seconds, records a second, processor seconds a million records; the queries' states."""

    live: bool
    partitions: int
    took: float
    rate: float
    cost: float
    state: str

    def row(self) -> list[str]:
        """Of the table."""
        into = "clicks and live counts" if self.live else "clicks alone"
        return [into, str(self.partitions), f"{self.rate:,.0f}", f"{self.took:.1f}", f"{self.cost:.0f}", self.state]


def make_lake(home: Path, spark: Any, broker: KafkaBroker, partitions: int) -> StreamedLake:
    """A lake of its own, and a topic without records, which get the time at which they arrive."""
    lake = StreamedLake(spark, make_settings(home / str(uuid4())), broker, f"clicks-{uuid4()}")
    lake.configure()
    broker.create_topic(lake.topic, partitions, **{"message.timestamp.type": "LogAppendTime"})
    return lake


def send(lake: StreamedLake, lines: list[bytes], partitions: int) -> None:
    """Produce the lines, evenly over the partitions."""
    producer = Producer(
        {
            "bootstrap.servers": lake.broker.bootstrap_servers,
            "linger.ms": 20,
            "queue.buffering.max.messages": 2_000_000,
            "queue.buffering.max.kbytes": 2_000_000,
        }
    )
    for number, line in enumerate(lines):
        producer.produce(lake.topic, value=line, partition=number % partitions)
    assert producer.flush(300) == 0


def catch_up(
    home: Path, spark: Any, broker: KafkaBroker, lines: list[bytes], partitions: int, live: bool, watch: SparkWatch
) -> CatchUp:
    """From the first record to the last one's commit."""
    lake = make_lake(home, spark, broker, partitions)
    send(lake, lines, partitions)
    begun, cpu = time.perf_counter(), watch.processor_seconds()
    lake.read_all(live=live)
    took, used = time.perf_counter() - begun, watch.processor_seconds() - cpu
    accepted = sum(row["accepted"] for row in lake.rows(STREAM_BATCHES))
    state = {row["query"]: (row["state_rows"], row["state_bytes"]) for row in lake.rows(STREAM_PROGRESS)}
    listed = ", ".join(f"{query} {rows:,} keys {size / 2**20:.0f} MiB" for query, (rows, size) in state.items())
    shutil.rmtree(lake.settings.home)
    assert accepted > 0.9 * len(lines)
    return CatchUp(live, partitions, took, len(lines) / took, used * 1e6 / len(lines), listed)


def bare_spark(home: Path, spark: Any, lake: StreamedLake, watch: SparkWatch) -> tuple[float, float]:
    """The topic's records into Parquet as they are; the seconds, and processor seconds."""
    begun, cpu = time.perf_counter(), watch.processor_seconds()
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", lake.broker.bootstrap_servers)
    records = source.option("subscribe", lake.topic).option("startingOffsets", "earliest").load()
    folder = home / "bare"
    written = records.select("value", "partition", "offset", "timestamp").writeStream.trigger(availableNow=True)
    written.option("checkpointLocation", str(folder / "checkpoint")).start(str(folder / "rows")).awaitTermination()
    took, used = time.perf_counter() - begun, watch.processor_seconds() - cpu
    shutil.rmtree(folder)
    return took, used


def peers(home: Path, spark: Any, broker: KafkaBroker, lines: list[bytes], watch: SparkWatch) -> Table:
    """What others take for the same topic of 4 partitions."""
    lake = make_lake(home, spark, broker, 4)
    send(lake, lines, 4)
    table = Table(title=f"The same {len(lines):,} records by others, 4 partitions")
    for heading in ("what", "clicks/s", "CPU s per million"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    took, used = bare_spark(home, spark, lake, watch)
    table.add_row("Spark, records into Parquet", f"{len(lines) / took:,.0f}", f"{used * 1e6 / len(lines):.0f}")
    peer = kafka_streams.count(broker.bootstrap_servers, lake.topic, 4, len(lines), home / "kafka-streams")
    assert peer.records == len(lines)
    assert peer.counted > 3.5 * len(lines), "of most clicks two windows by two keys"
    cost = peer.processor_seconds * 1e6 / len(lines)
    table.add_row("Kafka Streams, live counts alone", f"{len(lines) / peer.seconds:,.0f}", f"{cost:.0f}")
    shutil.rmtree(lake.settings.home)
    return table


class Reader(threading.Thread):
    """Looks at ``clicks`` again and again, and remembers when each marked click was there for the first time."""

    def __init__(self, table: str) -> None:
        super().__init__(daemon=True)
        self.table, self.seen, self.done = table, dict[str, float](), threading.Event()

    def run(self) -> None:
        """Until told that it is done."""
        last = -1
        while not self.done.wait(0.05):
            if not DeltaTable.is_deltatable(self.table):
                continue
            table = DeltaTable(self.table)
            if table.version() > last:
                last, now = table.version(), time.time()
                marked = [("event_id", ">=", MARK), ("event_id", "<", MARK + "~")]
                for event_id in table.to_pyarrow_table(columns=["event_id"], filters=marked)["event_id"].to_pylist():
                    self.seen.setdefault(event_id, now)


def latency(home: Path, spark: Any, broker: KafkaBroker, rate: float, length: float) -> float:
    """Seconds from producing a click to its being readable, median; the first third is left out as the start."""
    from spark_jobs.stream import query as stream_query

    lake = make_lake(home, spark, broker, 4)
    topic = topic_of(lake.source).model_copy(update={"trigger_seconds": 0.0})
    query = stream_query.start(spark, lake.settings, lake.source.model_copy(update={"kafka": topic}))
    reader = Reader(str(lake.settings.lake / CLICKS.name))
    reader.start()
    clicks, produced = LiveClicks(rate, seed=11), dict[str, float]()
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5})
    sent, begun = 0, time.monotonic()
    while (gone := time.monotonic() - begun) < length:
        due = int(gone * rate) - sent
        for line in clicks.lines(due, int(time.time() * 1000)) if due else ():
            producer.produce(lake.topic, value=line)
        sent += due
        now = time.time()
        event_id = f"{MARK}{now}"
        producer.produce(lake.topic, value=click(event_id, datetime.fromtimestamp(now, tz=UTC).isoformat()))
        produced[event_id] = now
        producer.poll(0.1)
    producer.flush(60)
    wanted = [event_id for event_id, at in produced.items() if at > min(produced.values()) + length / 3]
    deadline = time.monotonic() + 120
    while not reader.seen.keys() >= set(wanted) and time.monotonic() < deadline:
        time.sleep(0.2)
    reader.done.set()
    query.stop()
    reader.join()
    shutil.rmtree(lake.settings.home)
    waits = sorted(reader.seen[event_id] - produced[event_id] for event_id in wanted)
    console.print(
        f"{rate:,.0f} clicks a second for {length:.0f} s: readable after median {statistics.median(waits):.1f} s, "
        f"99 of 100 within {waits[int(len(waits) * 0.99)]:.1f} s ({len(waits)} marked clicks)"
    )
    return statistics.median(waits)


@contextmanager
def streaming_home() -> Iterator[tuple[Path, SparkSession, KafkaBroker, SparkWatch]]:
    """A home whose services run, and a broker, until the end."""
    from pyspark.sql import SparkSession

    from spark_jobs.engine.session import configure

    home = Path(tempfile.mkdtemp(prefix="cm-bench-"))
    services = start(home / "services")
    broker = KafkaBroker.in_folder(home / "kafka")
    broker.start()
    try:
        spark = configure(SparkSession.builder.remote(services.spark_remote).getOrCreate())
        yield home, spark, broker, SparkWatch(services.home)
        spark.stop()
    finally:
        broker.stop()
        stop(home / "services")
        shutil.rmtree(home, ignore_errors=True)


def main() -> None:
    """Run both parts."""
    clicks = int(os.environ.get("BENCH_CLICKS", "1000000"))
    partitions = [int(number) for number in os.environ.get("BENCH_PARTITIONS", "1,2,4,8").split(",")]
    console.print(
        f"{psutil.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB, "
        f"Python {platform.python_version()}"
    )
    with streaming_home() as (home, spark, broker, watch):
        lines = LiveClicks(rate=clicks / 3600, seed=3).lines(clicks, int(time.time() * 1000))
        catch_up(home, spark, broker, lines[: clicks // 5], 2, True, watch)
        table = Table(title=f"Catch-up of {len(lines):,} records")
        for heading in ("into", "partitions", "clicks/s", "s", "CPU s per million", "state"):
            table.add_column(heading, justify="left" if heading in ("into", "state") else "right")
        results = []
        for live in (False, True):
            for number in partitions:
                results.append(catch_up(home, spark, broker, lines, number, live, watch))
                table.add_row(*results[-1].row())
        console.print(table)
        console.print(peers(home, spark, broker, lines, watch))
        for name, live in (("stream", False), ("stream_live", True)):
            if rates := [result.rate for result in results if (result.live, result.partitions) == (live, 4)]:
                record(name, *rates)
        record("stream_processor", *(result.cost for result in results if not result.live))
        console.print(f"peak memory of the server and its workers: {watch.stop():,.0f} MiB")
        best, length = max(result.rate for result in results), float(os.environ.get("BENCH_SECONDS", "60"))
        waits = {share: latency(home, spark, broker, share * best, length) for share in (0.1, 0.5, 0.9)}
        record("stream_wait", waits[0.5])


if __name__ == "__main__":
    main()

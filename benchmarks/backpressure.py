"""Let a stream fall behind, and see what becomes of it.

For ``--seconds`` clicks are produced at ``--rate``, about twice what the stream, with both live counts, reads
meanwhile; then none, until all are read. Each second is noted how many are produced (by the broker) and read
(``stream_progress``), and the memory of the Spark server and its workers. Prints what was seen, and draws the picture
of the guide. Producer, broker and stream share the cores.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from deltalake import DeltaTable

from benchmarks.backpressure_picture import Moment, draw
from benchmarks.bench_stream import catch_up, make_lake, send, streaming_home
from benchmarks.timing import console
from include.command import described_parser, exit_with
from include.settings import REPOSITORY
from include.tables import STREAM_PROGRESS
from samples.live_clicks import LiveClicks
from tests.stream.streamed_lake import StreamedLake
from tests.support.waiting import wait_until

PICTURE = REPOSITORY / "docs" / "images" / "backpressure.svg"
PARTITIONS = 4
#: Read before anything is measured, because a server is slow at first.
BACKLOG = 1_000_000
#: Nothing is produced for so many times as long at most.
MOST_DRAINING = 4


def produce(bootstrap_servers: str, topic: str, rate: float, seconds: float) -> None:
    """Send clicks of now at that rate; what the broker does not take in time is sent later."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 50, "compression.type": "lz4"})
    clicks, sent, begun = LiveClicks(rate, seed=17), 0, time.monotonic()
    while sent < rate * seconds:
        due = int(min(time.monotonic() - begun, seconds) * rate) - sent
        for number, line in enumerate(clicks.lines(due, int(time.time() * 1000)) if due else ()):
            while True:
                try:
                    producer.produce(topic, value=line, partition=number % PARTITIONS)
                    break
                except BufferError:
                    producer.poll(0.1)
        sent += due
        if time.monotonic() - begun >= seconds:
            break
        producer.poll(0.1)
    producer.flush(60)


class Offsets:
    """How many records of a lake's topic there are, and how many its stream has read, by the table of its progress."""

    def __init__(self, lake: StreamedLake) -> None:
        self._table = str(lake.settings.lake / STREAM_PROGRESS.name)
        self._partitions = [TopicPartition(lake.topic, number) for number in range(PARTITIONS)]
        self._consumer = Consumer({"bootstrap.servers": lake.broker.bootstrap_servers, "group.id": "none"})

    def produced(self) -> int:
        """As the broker says."""
        return sum(self._consumer.get_watermark_offsets(partition, timeout=30)[1] for partition in self._partitions)

    def read(self) -> int:
        """Up to the last micro-batch that has ended."""
        if not DeltaTable.is_deltatable(self._table):
            return 0
        rows = DeltaTable(self._table).to_pyarrow_table(
            columns=["partition", "next_offset"], filters=[("query", "=", "clicks")]
        )
        return sum(rows.group_by("partition").aggregate([("next_offset", "max")])["next_offset_max"].to_pylist())

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()


def fall_behind(lake: StreamedLake, rate: float, seconds: float, mebibytes: Callable[[], float]) -> list[Moment]:
    """Stream, produce, and stream on until all is read; what was seen each second.

    Raises:
        AssertionError: if the stream ends, or is not through in ``MOST_DRAINING`` times as long.
    """
    from spark_jobs.stream import job as stream_job
    from spark_jobs.stream.end_request import EndRequest

    end, offsets = EndRequest(), Offsets(lake)
    arguments = lake.spark, lake.settings, [lake.source]
    stream = threading.Thread(target=lambda: stream_job.stream(*arguments, available_now=False, asked_to_end=end))
    stream.start()
    producer = multiprocessing.get_context("spawn").Process(
        target=produce, args=(lake.broker.bootstrap_servers, lake.topic, rate, seconds)
    )
    try:
        send(lake, LiveClicks(1, seed=1).lines(PARTITIONS, int(time.time() * 1000)), PARTITIONS)
        wait_until(lambda: offsets.read() > 0, "the stream reads")
        producer.start()
        seen, begun = list[Moment](), time.monotonic()
        while True:
            produced, read, now = offsets.produced(), offsets.read(), time.monotonic() - begun
            seen.append(Moment(now, produced, read, mebibytes(), producer.is_alive()))
            if read == produced and not producer.is_alive():
                return seen
            assert stream.is_alive(), "the stream has ended"
            assert now < (1 + MOST_DRAINING) * seconds + 60, f"{produced - read:,} records not read"
            time.sleep(max(0.0, begun + len(seen) - time.monotonic()))
    finally:
        if producer.is_alive():
            producer.terminate()
        end.made = True
        stream.join()
        offsets.close()


def described(seen: Sequence[Moment]) -> str:
    """What was seen, in a sentence or two."""
    last = max(at for at, moment in enumerate(seen) if moment.is_producing)
    first, most, end = seen[0], max(seen, key=lambda moment: moment.lag), seen[-1]
    load, drain = seen[: last + 1], seen[last:]
    produced = (seen[last].produced - first.produced) / seen[last].second
    read = (seen[last].read - first.read) / seen[last].second
    drained = (end.read - seen[last].read) / (end.second - seen[last].second)
    third = len(load) // 3
    memory = [max(moment.mebibytes for moment in part) for part in (load[:third], load[-third:], drain)]
    return (
        f"{produced:,.0f} clicks a second for {seen[last].second:.0f} s, of which the stream reads {read:,.0f}: "
        f"{produced / read:.1f} times as many. The lag grows to {most.lag:,} "
        f"records, and is 0 after {end.second - seen[last].second:.0f} s without production ({drained:,.0f} a second). "
        f"Memory of server and workers, largest of the first third, the last third, and while it drains: "
        f"{memory[0]:,.0f}, {memory[1]:,.0f} and {memory[2]:,.0f} MiB."
    )


def main() -> None:
    """Run it once."""
    parser = described_parser("benchmarks.backpressure", __doc__)
    parser.add_argument("--seconds", type=float, default=300, help="how long is produced (default 300)")
    parser.add_argument("--rate", type=float, default=110_000, help="clicks a second (default 110000)")
    parser.add_argument("--picture", type=Path, default=PICTURE, help="where to draw it (default the guide's)")
    arguments = parser.parse_args()
    with streaming_home() as (home, spark, broker, watch):
        lines = LiveClicks(BACKLOG / 3600, seed=3).lines(BACKLOG, int(time.time() * 1000))
        catch_up(home, spark, broker, lines, PARTITIONS, True, watch)
        lake = make_lake(home, spark, broker, PARTITIONS)
        seen = fall_behind(lake, arguments.rate, arguments.seconds, lambda: watch.mebibytes)
        watch.stop()
        arguments.picture.write_text(draw(seen), encoding="utf-8")
        console.print(described(seen))
        console.print(f"{arguments.picture}: {arguments.picture.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    exit_with(main)

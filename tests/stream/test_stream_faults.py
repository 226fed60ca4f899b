"""The stream's processes, killed: the stream itself, the Spark server under it, the broker, one by one and together.

CLICKMILL_FAULT_ROUNDS says how often at random moments, CLICKMILL_FAULT_SEED at which ones.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

import pytest
from deltalake import DeltaTable

from include.hours import Hour
from include.settings import REPOSITORY
from include.tables import CLICKS, QUARANTINED_CLICKS, STREAM_BATCHES
from samples.sample_logs import make_sample
from samples.sample_spec import SampleSpec
from tests.stream.kafka_broker import KafkaBroker, Record, running_broker
from tests.stream.landed_records import landed_records
from tests.stream.streamed_home import PLACE, StreamedHome, StreamProcess, multiset
from tests.support.spark_server import SparkServer, own_server
from tests.support.temporary_lake import click, make_settings
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.faults]

ROUNDS = int(os.environ.get("CLICKMILL_FAULT_ROUNDS") or 3)
SEED = int(os.environ.get("CLICKMILL_FAULT_SEED") or random.randrange(1 << 32))
VICTIMS = ("stream", "server", "stream and server")
ROWS_PER_BATCH = 100
HOUR = Hour.parse("2026-03-01T08")


@dataclass
class Machine:
    """What the tests may kill."""

    server: SparkServer
    broker: KafkaBroker
    folder: Path

    def home(self, name: str, **kafka: object) -> StreamedHome:
        """A home of a test's own, whose topic has 3 partitions."""
        return StreamedHome.in_folder(self.folder / name, self.broker, trigger_seconds=0, **kafka)


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """A Spark server and a broker of the module's own."""
    with (
        own_server() as server,
        running_broker() as broker,
        tempfile.TemporaryDirectory(prefix="cm-faults-", ignore_cleanup_errors=True) as folder,
    ):
        yield Machine(server, broker, Path(folder))


@dataclass
class Reader:
    """Reads clicks again and again while others write."""

    table: Path
    seen: list[tuple[int, int]] = field(default_factory=list)
    failed: list[Exception] = field(default_factory=list)

    def read(self) -> None:
        """Note how many clicks, and how many different ones, there are now."""
        if DeltaTable.is_deltatable(str(self.table)):
            ids = DeltaTable(self.table).to_pyarrow_table(columns=["event_id"])["event_id"].to_pylist()
            self.seen.append((len(ids), len(set(ids))))

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read beside the block."""
        ended = threading.Event()

        def go_on() -> None:
            try:
                while not ended.wait(0.3):
                    self.read()
            except Exception as error:
                self.failed.append(error)

        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def clicks_of(*numbers: int) -> list[Record]:
    """Records of clicks, sent to 3 partitions."""
    start = int(HOUR.start.timestamp() * 1000)
    return [Record(number % 3, start + number, click(f"e{number}", "2026-03-01T08:10:00Z")) for number in numbers]


def running_stream(machine: Machine, home: StreamedHome) -> StreamProcess:
    """The stream, started without an end, once it runs."""
    stream = home.start_stream(machine.server.remote)
    wait_until(lambda: "runs" in stream.output or stream.process.poll() is not None, "the stream runs")
    assert stream.process.poll() is None, stream.output[-4000:]
    return stream


def kill_at_some_moment(
    machine: Machine, home: StreamedHome, records: list[Record], victim: str, moments: random.Random
) -> None:
    """One round: start the stream, give it records, and kill at a random moment of its start or of its batches."""
    if victim != "server" and moments.random() < 0.3:
        machine.broker.produce(home.topic, records)
        stream = home.start_stream(machine.server.remote)
        time.sleep(moments.uniform(0, 8))
    else:
        stream = running_stream(machine, home)
        begun = home.begun_batches() + moments.choice((0, 0, 1))
        machine.broker.produce(home.topic, records)
        wait_until(lambda: home.begun_batches() > begun or stream.process.poll() is not None, "batches are begun")
        time.sleep(moments.uniform(0, 6))
        assert stream.process.poll() is None, stream.output[-4000:]
    if "stream" in victim:
        stream.kill()
    if "server" in victim:
        machine.server.kill()
        machine.server.start()
    if victim == "server":
        assert stream.wait() == 1
        assert stream.last_line.startswith("failed: the stream of web broke off: ")
        assert "Traceback" not in stream.output


def test_killed_at_random_moments_the_stream_writes_what_the_batch_writes(machine: Machine) -> None:
    print(f"CLICKMILL_FAULT_SEED={SEED} CLICKMILL_FAULT_ROUNDS={ROUNDS}")
    moments = random.Random(SEED)
    home = machine.home("killed", max_rows_per_batch=ROWS_PER_BATCH)
    spec = SampleSpec(start=HOUR, hours=2, clicks_per_hour=150 * (ROUNDS + 1), seed=SEED)
    truth = make_sample(spec, home.settings.landing)
    records = list(landed_records(home.settings.landing, "web", list(spec.log_hours), partitions=3))
    batch = ingested_at_once(machine, home, spec)
    victims = [victim for _ in range(0, ROUNDS, len(VICTIMS)) for victim in moments.sample(VICTIMS, len(VICTIMS))]

    reader = Reader(home.settings.lake / CLICKS.name)
    with reader.reading():
        for number, victim in enumerate(victims[:ROUNDS]):
            part = records[number * len(records) // (ROUNDS + 1) : (number + 1) * len(records) // (ROUNDS + 1)]
            print(f"round {number + 1}: {victim}, after {home.begun_batches()} batches", flush=True)
            kill_at_some_moment(machine, home, part, victim, moments)
        machine.broker.produce(home.topic, records[ROUNDS * len(records) // (ROUNDS + 1) :])
        home.configure(max_rows_per_batch=ROUNDS * ROWS_PER_BATCH)
        home.read_all(machine.server.remote)
    reader.read()

    for table in (CLICKS, QUARANTINED_CLICKS):
        assert multiset(home.rows(table), PLACE) == multiset(batch.rows(table), PLACE)
    account = home.rows(STREAM_BATCHES)
    assert sum(row["lines"] for row in account) == len(records)
    for log_hour, of in truth.log_hours.items():
        own = [row for row in account if Hour.of(row["log_date"], row["log_hour"]) == Hour.parse(log_hour)]
        quarantined: Counter[str] = Counter()
        for row in own:
            quarantined.update(dict(row["quarantined_by_reason"]))
        counted = (sum(row["lines"] for row in own), sum(row["accepted"] for row in own), quarantined)
        assert counted == (of.lines, of.accepted, of.quarantined)
        assert sum(row["late"] for row in own) == of.late
    assert_only_whole_batches(reader, home)


def assert_only_whole_batches(reader: Reader, home: StreamedHome) -> None:
    """Whatever a reader saw of clicks were the batches up to one of them, each click once."""
    assert not reader.failed
    accepted: Counter[int] = Counter()
    for row in home.rows(STREAM_BATCHES):
        accepted[row["batch_id"]] += row["accepted"]
    whole = {0, *accumulate(accepted[batch_id] for batch_id in sorted(accepted))}
    assert [count for count, _ in reader.seen if count not in whole] == []
    assert [count for count, different in reader.seen if count != different] == []
    assert len(set(reader.seen)) > ROUNDS, "the reader has seen next to nothing"


def ingested_at_once(machine: Machine, home: StreamedHome, spec: SampleSpec) -> StreamedHome:
    """The batch job's lake of the lines that are landed in the home."""
    batch = StreamedHome(make_settings(machine.folder / "batch"), machine.broker)
    home.settings.landing.rename(batch.settings.landing)
    hours = ["--from", str(spec.start), "--to", str(spec.start.plus(spec.hours))]
    done = subprocess.run(
        [sys.executable, "-m", "clickmill", "ingest", "--source", "web", *hours],
        env=batch.environment(machine.server.remote), cwd=REPOSITORY, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return batch


def test_a_stream_whose_client_was_killed_is_taken_over_by_the_next_one(machine: Machine) -> None:
    home = machine.home("taken-over", max_rows_per_batch=2)
    machine.broker.produce(home.topic, clicks_of(*range(8)))
    running_stream(machine, home).kill()
    # The query goes on in the server.
    wait_until(lambda: home.accepted() >= 4, "the query without a client has written two batches")

    second = running_stream(machine, home)
    machine.broker.produce(home.topic, clicks_of(*range(8, 12)))
    wait_until(lambda: home.accepted() >= 12 or second.process.poll() is not None, "all are read")

    assert second.process.poll() is None, second.output[-4000:]

    # As if a killed process had asked for its start, and the server had come to it only now.
    started_late(machine, home)
    wait_until(
        lambda: "is started again" in second.output or second.process.poll() is not None, "the stream takes it back"
    )
    machine.broker.produce(home.topic, clicks_of(*range(12, 16)))
    wait_until(lambda: home.accepted() >= 16 or second.process.poll() is not None, "all are read")

    assert second.process.poll() is None, second.output[-4000:]
    assert second.terminate() == 0, second.output[-4000:]
    assert second.output.splitlines() == [
        "the stream of web runs",
        "the stream of web (clicks) was ended by another start of it, or on the Spark server, and is started again",
        "asked to end; a second signal ends this at once",
        "the stream of web was asked to end",
    ]
    assert home.event_ids() == sorted(f"e{number}" for number in range(16))


def test_a_stream_to_the_end_that_is_cut_short_does_not_say_success(machine: Machine) -> None:
    home = machine.home("cut-short", max_rows_per_batch=2)
    machine.broker.produce(home.topic, clicks_of(*range(120)))
    first = home.start_stream(machine.server.remote, "--available-now")
    wait_until(lambda: home.accepted() >= 2 or first.process.poll() is not None, "a batch is read")
    assert first.terminate() == 1, first.output[-4000:]
    assert first.last_line == "failed: the stream of web was asked to end before it had read all; start it again"
    assert home.accepted() < 120

    second = home.start_stream(machine.server.remote, "--available-now")
    before = home.accepted()
    wait_until(lambda: home.accepted() > before or second.process.poll() is not None, "another batch is read")
    started_late(machine, home)
    assert second.wait() == 0, second.output[-4000:]
    assert "is started again" in second.output
    assert home.event_ids() == sorted(f"e{number}" for number in range(120)), "it was ended, and went on to the end"


def started_late(machine: Machine, home: StreamedHome) -> None:
    """Start the stream's query in a process of its own, without regard to the lock of its checkpoint."""
    program = (
        "from include.settings import Settings\n"
        "from include.sources import load_sources\n"
        "from spark_jobs.stream import query as stream_query\n"
        "from spark_jobs.engine.session import open_session\n"
        "settings = Settings.from_environment()\n"
        "stream_query.start(open_session(settings), settings, load_sources(settings)['web'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=home.environment(machine.server.remote), cwd=REPOSITORY, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]


def test_a_second_stream_on_a_checkpoint_is_refused(machine: Machine) -> None:
    home = machine.home("two")
    machine.broker.produce(home.topic, clicks_of(0, 1))
    first = running_stream(machine, home)
    second = home.start_stream(machine.server.remote)
    assert second.wait() == 1
    assert second.output == (
        f"failed: the stream of web runs already: its checkpoint {home.checkpoint} belongs to another process; "
        "end that one first\n"
    )
    wait_until(lambda: home.accepted() == 2 or first.process.poll() is not None, "the first stream goes on")
    assert first.terminate() == 0, first.output[-4000:]
    assert home.event_ids() == ["e0", "e1"]


def test_a_broker_that_was_killed_is_read_again_when_it_is_back(machine: Machine) -> None:
    home = machine.home("broker", max_rows_per_batch=10)
    machine.broker.produce(home.topic, clicks_of(*range(20)))
    stream = running_stream(machine, home)
    wait_until(lambda: home.begun_batches() > 1 or stream.process.poll() is not None, "a second batch is begun")
    machine.broker.stop(signal.SIGKILL)
    machine.broker.start()
    machine.broker.produce(home.topic, clicks_of(*range(20, 30)))
    wait_until(lambda: home.accepted() == 30 or stream.process.poll() is not None, "all are read")
    assert stream.process.poll() is None, stream.output[-4000:]
    assert stream.terminate() == 0, stream.output[-4000:]
    assert home.event_ids() == sorted(f"e{number}" for number in range(30))

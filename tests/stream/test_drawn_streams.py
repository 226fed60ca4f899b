"""Whatever the history of a stream from a real broker, in the end its clicks are published as plain Python counts them.

A history is: records of hours of now and of weeks ago that are read; micro-batches that are killed between two of their
commits, and run again after runs beside them; checkpoints that are lost; new topics; runs over log hours, some of which
are killed between two commits. One in the ordinary run, more under ``make test-faults`` (CLICKMILL_FAULT_ROUNDS);
CLICKMILL_FAULT_SEED draws the same ones again. What finalises the hours is tried far more often, without Spark, in
``tests/ingest/test_streamed_histories.py``.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

import pytest
from deltalake import DeltaTable

from include.hours import Hour, HourRange
from include.tables import PUBLISHED_CLICKS_BY_URL_HOURLY, STREAM_BATCHES, Table
from tests.stream.broken_checkpoint import TABLES, forget_end_of_batch, forget_last_commit
from tests.stream.kafka_broker import Record
from tests.stream.streamed_lake import StreamedLake
from tests.support.fault_rounds import ARE_MANY, ROUNDS, SEED
from tests.support.killed_runs import Killed, killed_after
from tests.support.lake_model import stored_counts
from tests.support.temporary_lake import JOBS, click, copied_home

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.faults]

STEPS = 8 if ARE_MANY else 6
START = Hour.parse("2026-03-20T08")
#: Log hours that are run together: some of weeks ago, some of now.
RANGES = [(START.plus(-501), START.plus(-499)), (START, START.plus(3))]


@dataclass
class History:
    """A streamed lake, and what plain Python knows of it."""

    lake: StreamedLake
    folder: Path
    rng: random.Random
    #: Accepted clicks by click hour and URL.
    clicks: Counter[tuple[int, str]] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)
    #: What is in the topic, and has not been read to the end.
    is_unread: bool = False
    #: Whether a micro-batch is half written.
    is_half_written: bool = False
    finalised: set[Hour] = field(default_factory=set)
    killed: list[tuple[Hour, Hour]] = field(default_factory=list)
    number: int = 0

    def play(self) -> None:
        """Some steps, then everything to the end."""
        for _ in range(STEPS):
            step = self.rng.choice([self.send, self.send, self.read, self.kill_batch, self.run, self.run, self.renew])
            step()
        self.send()
        self.read()
        for start, end in self.killed:
            self.run_jobs(start, end)
        for start, end in RANGES:
            for hour in HourRange(start, end):
                if hour not in self.finalised:
                    self.run_jobs(hour, hour.plus(1))
        # What has come to hours that were run before is not to be forgotten.
        newest = RANGES[-1][1]
        self.run_jobs(newest.plus(-1), newest)
        assert self.published() == self.clicks, self.told

    def send(self) -> None:
        """Clicks, some of the hour before, some twice, and a line that is none, to each partition."""
        records = []
        for partition in range(3):
            start, end = self.rng.choice(RANGES)
            hour = Hour.of_number(self.rng.randrange(start.number, end.number))
            millis = int(hour.start.timestamp() * 1000)
            for _ in range(self.rng.randrange(1, 8)):
                self.number += 1
                of = hour.plus(self.rng.choice([0, 0, -1]))
                url = f"http://shop.test/{self.rng.randrange(3)}"
                line = click(f"e{self.number}", f"{of}:10:00Z", url)
                records += [Record(partition, millis + self.number, line)] * self.rng.choice([1, 1, 2])
                self.clicks[of.number, url] += 1
            if self.rng.random() < 0.2:
                records.append(Record(partition, millis + self.number, b"no click"))
        self.lake.broker.produce(self.lake.topic, records)
        self.is_unread = True
        self.told.append(f"send {len(records)} records")

    def read(self) -> None:
        """The stream reads all that is there."""
        self.lake.read_all()
        self.is_unread = self.is_half_written = False
        self.told.append("read")

    def kill_batch(self) -> None:
        """The stream reads what is there, and is killed after some of the commits of its micro-batch, or none."""
        if self.is_half_written:
            self.read()
        if not self.is_unread:
            self.send()
        before = {table: self._version(table) for table in TABLES}
        self.read()
        made = [table for table in TABLES if self._version(table) > before[table]]
        written = self.rng.randrange(len(made))
        self.number += 1
        self.lake = replace(self.lake, settings=copied_home(self.lake.settings, self.folder / str(self.number)))
        batch_id = max(self.lake.rows(STREAM_BATCHES, without=()), key=lambda row: row["written_at"])["batch_id"]
        forget_end_of_batch(self.lake.settings.streams / "web", batch_id)
        for table in made[written:]:
            forget_last_commit(self.lake.settings.lake / table.name)
        self.is_unread = self.is_half_written = True
        self.told.append(f"micro-batch {batch_id} killed after {[table.name for table in made[:written]]}")

    def _version(self, table: Table) -> int:
        path = str(self.lake.settings.lake / table.name)
        return DeltaTable(path).version() if DeltaTable.is_deltatable(path) else -1

    def run(self) -> None:
        """Log hours are finalised, counted, validated and published; or that is killed."""
        start, end = self.rng.choice(RANGES)
        first = self.rng.randrange(start.number, end.number)
        last = self.rng.randrange(first, end.number) + 1
        start, end = Hour.of_number(first), Hour.of_number(last)
        if self.rng.random() < 0.3:
            self.killed.append((start, end))
            with suppress(Killed), killed_after(self.rng.randrange(1, 12), self.rng.randrange(2)):
                self.run_jobs(start, end)
        else:
            self.run_jobs(start, end)
        if not self.is_half_written:
            too_many = self.published() - self.clicks
            assert not too_many, self.told

    def run_jobs(self, start: Hour, end: Hour) -> None:
        self.told.append(f"run {start} to {end}")
        self.lake.run_jobs(str(start), str(end), *JOBS)
        self.finalised |= set(HourRange(start, end))

    def renew(self) -> None:
        """All is read; then the checkpoint is lost, and perhaps it is another topic."""
        self.read()
        if self.rng.random() < 0.5:
            self.lake.topic = f"clicks-{uuid4()}"
            self.lake.configure()
            self.lake.broker.create_topic(self.lake.topic, 3)
        shutil.rmtree(self.lake.settings.streams / "web", ignore_errors=True)
        self.told.append(f"checkpoint lost, topic {self.lake.topic}")

    def published(self) -> Counter[tuple[int, str]]:
        """By click hour and URL."""
        return stored_counts(self.lake, PUBLISHED_CLICKS_BY_URL_HOURLY)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_drawn_stream_is_published_as_plain_python_counts_it(
    streamed: StreamedLake, tmp_path: Path, number: int
) -> None:
    print(f"CLICKMILL_FAULT_SEED={SEED} CLICKMILL_FAULT_ROUNDS={ROUNDS}")
    History(streamed, tmp_path, random.Random(f"{SEED}/{number}")).play()

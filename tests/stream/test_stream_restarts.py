"""A checkpoint that does not fit its tables: behind them, as a kill between two commits leaves it, or gone."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from include.errors import ClickmillError
from include.hours import Hour
from include.tables import CLICKS, STREAM_BATCHES
from tests.stream.broken_checkpoint import TABLES, forget_end_of_batch, forget_last_commit
from tests.stream.kafka_broker import KafkaBroker, Record
from tests.stream.streamed_home import StreamedHome, multiset
from tests.support.temporary_lake import click, copied_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

MILLISECONDS = int(Hour.parse("2026-03-01T08").start.timestamp() * 1000)
LAST_BATCH = 2
WRITTEN_AT = frozenset({"written_at"})


def records_of(*numbers: int, partition: int = 0) -> list[Record]:
    """Of every four, two are clicks, one is the click before once more, one is no click."""

    def value(number: int) -> bytes:
        if number % 4 == 3:
            return b"no click"
        return click(f"e{number - 1 if number % 4 == 2 else number}", "2026-03-01T08:10:00Z")

    return [Record(partition, MILLISECONDS + number, value(number)) for number in numbers]


@dataclass
class Read:
    """A home whose three batches are read, never changed: a test works on a copy."""

    home: StreamedHome
    rows: dict[str, list[dict[str, Any]]]

    def copied(self, folder: Path) -> StreamedHome:
        """The same home elsewhere."""
        return replace(self.home, settings=copied_home(self.home.settings, folder))


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession, broker: KafkaBroker) -> Read:
    home = StreamedHome.in_folder(tmp_path_factory.mktemp("read") / "home", broker, max_rows_per_batch=4)
    broker.produce(home.topic, records_of(*range(12)))
    home.read_all_in(spark)
    rows = {table.name: home.rows(table) for table in TABLES}
    assert {row["batch_id"] for row in rows[STREAM_BATCHES.name]} == {0, 1, LAST_BATCH}
    return Read(home, rows)


@pytest.mark.parametrize("written", [0, 1, 2, 3], ids=["before all", "clicks", "quarantined too", "all tables"])
def test_a_batch_that_was_killed_after_some_of_its_commits_is_in_each_table_once(
    tmp_path: Path, spark: SparkSession, read: Read, written: int
) -> None:
    home = read.copied(tmp_path / "home")
    forget_end_of_batch(home.checkpoint, LAST_BATCH)
    for table in TABLES[written:]:
        forget_last_commit(home.settings.lake / table.name)
        assert len(home.rows(table)) < len(read.rows[table.name])

    home.read_all_in(spark)

    for table in TABLES:
        assert multiset(home.rows(table), WRITTEN_AT) == multiset(read.rows[table.name], WRITTEN_AT)
    assert home.event_ids() == ["e0", "e1", "e4", "e5", "e8", "e9"]


def test_without_its_checkpoint_a_stream_goes_on_after_the_batches_in_the_lake(
    tmp_path: Path, spark: SparkSession, read: Read, capsys: pytest.CaptureFixture[str]
) -> None:
    home = StreamedHome.in_folder(tmp_path / "home", read.home.broker, max_rows_per_batch=4)
    home.broker.produce(home.topic, [*records_of(*range(8)), *records_of(8, 9, partition=1)])
    home.read_all_in(spark)
    shutil.rmtree(home.checkpoint)
    # The lake has not seen the last partition, and there is one more.
    home.broker.add_partitions(home.topic, 4)
    home.broker.produce(home.topic, [*records_of(12, 13), *records_of(16, partition=2), *records_of(20, partition=3)])

    home.read_all_in(spark)

    assert "has no checkpoint: it goes on after the batches in the lake" in capsys.readouterr().out
    assert home.event_ids() == sorted(f"e{number}" for number in (0, 1, 4, 5, 8, 9, 12, 13, 16, 20))
    account = home.rows(STREAM_BATCHES)
    assert len({row["stream_id"] for row in account}) == 2
    places = [
        (row["partition"], offset) for row in account for offset in range(row["first_offset"], row["last_offset"] + 1)
    ]
    assert sorted(places) == [*((0, offset) for offset in range(10)), (1, 0), (1, 1), (2, 0), (3, 0)]


def test_a_checkpoint_that_was_lost_in_the_middle_of_a_batch_is_reported_before_anything_is_written(
    tmp_path: Path, spark: SparkSession, read: Read
) -> None:
    home = read.copied(tmp_path / "home")
    forget_last_commit(home.settings.lake / STREAM_BATCHES.name)
    shutil.rmtree(home.checkpoint)
    with pytest.raises(ClickmillError, match=r"clicks has rows of batch 2 of stream web-.* had not ended when its"):
        home.read_all_in(spark)
    assert multiset(home.rows(CLICKS)) == multiset(read.rows[CLICKS.name])


def test_a_checkpoint_that_was_lost_in_the_middle_of_the_first_batch_is_reported_too(
    tmp_path: Path, spark: SparkSession, broker: KafkaBroker
) -> None:
    """The account of batches does not know the stream then; nor does another topic complete what the batch has left."""
    home = StreamedHome.in_folder(tmp_path / "first", broker)
    home.broker.produce(home.topic, records_of(0, 1, 3))
    home.read_all_in(spark)
    killed = Read(home, {}).copied(tmp_path / "killed")
    shutil.rmtree(killed.settings.lake / STREAM_BATCHES.name)
    shutil.rmtree(killed.checkpoint)
    for topic in (home.topic, f"{home.topic}-new"):
        if topic != home.topic:
            home.broker.create_topic(topic, 1)
        killed.topic = topic
        killed.configure()
        with pytest.raises(ClickmillError, match=r"clicks has rows of batch 0 of stream web-.* had not ended when its"):
            killed.read_all_in(spark)
        assert killed.event_ids() == ["e0", "e1"]


def test_of_another_topic_the_lake_does_not_know_where_to_go_on(
    tmp_path: Path, spark: SparkSession, read: Read
) -> None:
    home = read.copied(tmp_path / "home")
    shutil.rmtree(home.checkpoint)
    home.topic += "-new"
    home.broker.create_topic(home.topic, 1)
    home.broker.produce(home.topic, records_of(20, 21))
    home.configure()
    home.read_all_in(spark)
    assert home.event_ids() == sorted(["e0", "e1", "e4", "e5", "e8", "e9", "e20", "e21"])


def test_a_checkpoint_that_lost_its_offsets_alone_is_refused(tmp_path: Path, spark: SparkSession, read: Read) -> None:
    home = read.copied(tmp_path / "home")
    shutil.rmtree(home.checkpoint / "offsets")
    with pytest.raises(ClickmillError, match="has lost its offsets but kept its stream_id"):
        home.read_all_in(spark)


def test_a_checkpoint_that_cannot_be_written_is_reported_in_one_line(
    tmp_path: Path, spark: SparkSession, broker: KafkaBroker
) -> None:
    home = StreamedHome.in_folder(tmp_path / "home", broker)
    home.settings.streams.write_text("no folder")
    with pytest.raises(ClickmillError, match=r"checkpoint .*/streams/web cannot be written \(.+\); start the stream"):
        home.read_all_in(spark)

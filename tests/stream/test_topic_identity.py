"""Another topic under the name of the one that was read, a log that was cut, transactions: nothing is lost unsaid."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from include.errors import ClickmillError
from include.hours import Hour
from include.streams.broker_topic import BrokerTopic
from include.streams.kafka import topic_of
from include.streams.position import has_passed
from include.tables import CLICKS, STREAM_BATCHES, STREAM_PROGRESS
from spark_jobs.lake.lake import Lake
from spark_jobs.stream.checkpoint import StreamCheckpoint
from tests.stream.kafka_broker import KafkaBroker, Record
from tests.stream.streamed_lake import StreamedLake
from tests.support.temporary_lake import click
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark

HOUR = Hour.parse("2026-03-01T08")


def records_of(hour: Hour, *names: str, partition: int = 0) -> list[Record]:
    at = int((hour.start + timedelta(minutes=5)).timestamp() * 1000)
    return [Record(partition, at, click(name, f"{hour}:05:00Z")) for name in names]


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def make_again(broker: KafkaBroker, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    (gone,) = admin.delete_topics([topic]).values()
    gone.result(30)
    wait_until(lambda: topic not in admin.list_topics(timeout=10).topics, "the topic is gone", 30)
    broker.create_topic(topic, 3)


def accepted(lake: StreamedLake) -> list[str]:
    return sorted(row["event_id"] for row in lake.rows(CLICKS))


def folder_of(lake: StreamedLake) -> Path:
    return StreamCheckpoint.of(lake.settings, "web").folder


def passed(lake: StreamedLake, hour: Hour) -> bool:
    return has_passed(lake.settings, lake.source, hour, hour.end)


@pytest.mark.slow
@pytest.mark.parametrize(("count", "fails"), [(4, False), (12, True), (18, False)])
def test_a_topic_that_was_made_again_is_another_one(
    streamed: StreamedLake, capfd: pytest.CaptureFixture[str], count: int, fails: bool
) -> None:
    """With fewer, as many and more records than were read."""
    streamed.configure(fail_on_data_loss=fails)
    streamed.broker.produce(streamed.topic, records_of(HOUR, *names("a", 12)))
    streamed.read_all()
    assert passed(streamed, HOUR)
    make_again(streamed.broker, streamed.topic)
    streamed.broker.produce(streamed.topic, records_of(HOUR.plus(1), *names("b", count)))
    assert not passed(streamed, HOUR.plus(1))
    assert f"no hour of web counts as read: topic {streamed.topic} is not the one" in capfd.readouterr().err
    with pytest.raises(ClickmillError) as told:
        streamed.read_all()
    assert str(told.value).startswith(f"topic {streamed.topic} is not the one that was read: it was made again")
    assert f"remove {folder_of(streamed)}" in str(told.value)
    assert "\n" not in str(told.value)
    assert "fail_on_data_loss" not in str(told.value)
    assert accepted(streamed) == sorted(names("a", 12))
    shutil.rmtree(folder_of(streamed))
    streamed.read_all()
    assert accepted(streamed) == sorted(names("a", 12) + names("b", count))
    assert passed(streamed, HOUR.plus(1))
    assert len({row["topic_id"] for row in streamed.rows(STREAM_BATCHES)}) == 2


def test_a_topic_that_is_made_again_while_its_stream_runs_is_read_by_none_of_its_batches(
    streamed: StreamedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it looks to a start that has just asked the broker: what comes then is more than was read."""
    from spark_jobs.stream.topic import ReadTopic

    streamed.configure(fail_on_data_loss=False)
    streamed.broker.produce(streamed.topic, records_of(HOUR, *names("a", 3)))
    streamed.read_all()
    make_again(streamed.broker, streamed.topic)
    streamed.broker.produce(streamed.topic, records_of(HOUR, *names("b", 9)))
    with monkeypatch.context() as patch:
        # In this process alone: the query's is another.
        patch.setattr(ReadTopic, "require", lambda *_: None)
        with pytest.raises(ClickmillError, match=r"\(clicks\) failed: .*topic .* was made again .* remove "):
            streamed.read_all()
    assert accepted(streamed) == names("a", 3)


def test_a_topic_that_has_lost_what_was_read_is_read_again(
    streamed: StreamedLake, capfd: pytest.CaptureFixture[str]
) -> None:
    """A broker that was restored from a copy has the topic's id still: the ids of all that is kept are changed here."""
    streamed.configure(fail_on_data_loss=False)
    streamed.broker.produce(streamed.topic, records_of(HOUR, *names("a", 6)))
    streamed.read_all()
    make_again(streamed.broker, streamed.topic)
    broker = BrokerTopic.of(topic_of(streamed.source), streamed.settings)
    topic_id, _ = broker.asked(broker.described)
    (folder_of(streamed) / "topic_id").write_text(topic_id)
    lake = Lake(streamed.spark, streamed.settings)
    batches = lake.read_rows(STREAM_BATCHES, STREAM_BATCHES.column_names, [])
    rows = [row | {"topic_id": topic_id} for row in batches]
    lake.replace_rows(STREAM_BATCHES, rows, "source = 'web'")
    records = [*records_of(HOUR, "a0", "a1"), *records_of(HOUR.plus(1), "b0"), *records_of(HOUR, "c0", partition=1)]
    streamed.broker.produce(streamed.topic, records)
    assert not passed(streamed, HOUR)
    assert "was read up to offset 6 and ends at 3" in capfd.readouterr().err
    with pytest.raises(ClickmillError) as told:
        streamed.read_all()
    assert f"topic {streamed.topic} has lost records that were read (partition 0 was read up to" in str(told.value)
    assert f"remove {folder_of(streamed)}" in str(told.value)
    assert "\n" not in str(told.value)
    assert accepted(streamed) == names("a", 6)
    shutil.rmtree(folder_of(streamed))
    assert not passed(streamed, HOUR)
    streamed.read_all()
    assert accepted(streamed) == [*names("a", 6), "b0", "c0"]
    assert passed(streamed, HOUR.plus(1))
    streamed.broker.produce(streamed.topic, records_of(HOUR, "d0"))
    assert not passed(streamed, HOUR.plus(1))
    shutil.rmtree(folder_of(streamed))
    streamed.read_all()
    assert accepted(streamed) == [*names("a", 6), "b0", "c0", "d0"]


class Transactions:
    """A producer's."""

    def __init__(self, lake: StreamedLake) -> None:
        self.lake = lake
        self.producer = Producer(
            {"bootstrap.servers": lake.broker.bootstrap_servers, "transactional.id": lake.topic, "log_level": 0}
        )
        self.producer.init_transactions(60)

    def begin(self, *records: Record) -> None:
        self.producer.begin_transaction()
        for record in records:
            self.producer.produce(self.lake.topic, record.value, partition=record.partition, timestamp=record.timestamp)
        self.producer.flush(60)

    def end(self, *, committed: bool) -> None:
        if committed:
            self.producer.commit_transaction(60)
        else:
            self.producer.abort_transaction(60)


def test_records_of_aborted_transactions_are_not_counted(streamed: StreamedLake) -> None:
    """Markers of transactions have the broker's time: all of them are before the hour that is asked for."""
    now = Hour.containing(datetime.now(UTC))
    later = now.plus(2)
    transactions = Transactions(streamed)
    for number, is_committed in enumerate([True, False, True, False, False]):
        transactions.begin(*records_of(now, *names(f"t{number}-", 3)), *records_of(now, f"u{number}", partition=1))
        transactions.end(committed=is_committed)
    kept = sorted([*names("t0-", 3), *names("t2-", 3), "u0", "u2"])
    assert not passed(streamed, later)
    streamed.read_all()
    assert accepted(streamed) == kept
    assert passed(streamed, later), "what is left are markers, and records of aborted transactions"
    transactions.begin(*records_of(now, "open"))
    streamed.read_all()
    assert not passed(streamed, later), "nobody knows yet whether it counts"
    transactions.end(committed=True)
    assert not passed(streamed, later)
    streamed.read_all()
    assert accepted(streamed) == sorted([*kept, "open"])
    assert passed(streamed, later)
    assert sum(row["lag"] for row in streamed.rows(STREAM_PROGRESS)[-3:]) == 0
    shutil.rmtree(folder_of(streamed))
    streamed.read_all()
    assert accepted(streamed) == sorted([*kept, "open"])
    assert sum(row["lines"] for row in streamed.rows(STREAM_BATCHES)) == len(kept) + 1


def test_records_of_aborted_transactions_are_counted_if_the_options_say_so(streamed: StreamedLake) -> None:
    streamed.configure(options={"isolation.level": "read_uncommitted"})
    transactions = Transactions(streamed)
    transactions.begin(*records_of(HOUR, "aborted"))
    transactions.end(committed=False)
    assert not passed(streamed, HOUR)
    streamed.read_all()
    assert accepted(streamed) == ["aborted"]
    assert passed(streamed, HOUR)

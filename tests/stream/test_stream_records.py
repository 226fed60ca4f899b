"""What a topic may do to its reader: send records twice, send what is no click, remove what was not read."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from include.errors import ClickmillError
from include.hours import Hour
from spark_jobs.stream.lines import lines_of_records
from tests.stream.kafka_broker import KafkaBroker, Record
from tests.stream.streamed_home import StreamedHome
from tests.support.temporary_lake import click

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

MILLISECONDS = int(Hour.parse("2026-03-01T08").start.timestamp() * 1000)


def clicks_of(*numbers: int, partitions: int = 1) -> list[Record]:
    return [
        Record(number % partitions, MILLISECONDS + number, click(f"e{number}", "2026-03-01T08:10:00Z"))
        for number in numbers
    ]


def test_the_embedded_broker_listens_on_loopback_only(broker: KafkaBroker) -> None:
    listening = [
        connection.laddr for connection in psutil.net_connections("tcp") if connection.status == psutil.CONN_LISTEN
    ]
    of_broker = {address for address in listening if address.port in (broker.port, broker.controller_port)}
    assert {address.ip.removeprefix("::ffff:") for address in of_broker} == {"127.0.0.1"}
    assert len(of_broker) == 2


def test_a_record_without_a_time_has_arrived_when_it_was_read(spark: SparkSession) -> None:
    """-1, as Spark gives it, has no time, and 2999 one that cannot be; 1970 is a time that somebody may have meant."""
    times = {
        -1: None, -5_000: None, None: None, 32_503_680_000_000: None,
        0: 0, 1: 0, MILLISECONDS: MILLISECONDS // 3_600_000,
    }  # fmt: skip
    rows = [(place, millis * 1000 if millis is not None else None) for place, millis in enumerate(times)]
    sent = spark.createDataFrame(rows, "offset BIGINT, micros BIGINT").selectExpr(
        "'clicks' AS topic", "0 AS partition", "offset", "timestamp_micros(micros) AS timestamp",
        "CAST('x' AS BINARY) AS value",
    )  # fmt: skip
    before = int(time.time() * 1_000_000)
    lines = {row["line"]: row for row in lines_of_records(sent, 100).collect()}
    for place, hour in enumerate(times.values()):
        if hour is None:
            assert before - 5_000_000 <= lines[place]["row_id"] <= int(time.time() * 1_000_000)
            assert lines[place]["hour"] == lines[place]["row_id"] // 3_600_000_000
        else:
            assert lines[place]["hour"] == hour


def test_records_that_were_removed_unread_end_the_stream_unless_told_to_go_on(
    tmp_path: Path, spark: SparkSession, broker: KafkaBroker
) -> None:
    home = StreamedHome.in_folder(tmp_path / "home", broker, partitions=1)
    broker.produce(home.topic, clicks_of(*range(6)))
    home.read_all_in(spark)
    broker.produce(home.topic, clicks_of(*range(6, 12)))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    (removed,) = admin.delete_records([TopicPartition(home.topic, 0, 9)]).values()
    assert removed.result(30).low_watermark == 9

    for _ in range(2):
        with pytest.raises(ClickmillError) as told:
            home.read_all_in(spark)
        assert "\n" not in str(told.value)
        assert f"records of topic {home.topic} were removed before they were read" in str(told.value)
        assert "fail_on_data_loss = false" in str(told.value)
    assert home.event_ids() == [f"e{number}" for number in range(6)]

    home.configure(fail_on_data_loss=False)
    home.read_all_in(spark)
    assert home.event_ids() == sorted(f"e{number}" for number in (*range(6), 9, 10, 11))

"""A disk that is full under the tables or under the checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from include.errors import ClickmillError
from include.hours import Hour
from include.tables import CLICKS, STREAM_BATCHES
from tests.stream.kafka_broker import KafkaBroker, Record
from tests.stream.streamed_home import StreamedHome
from tests.support.small_disk import filled, small_disk
from tests.support.temporary_lake import click

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

MILLISECONDS = int(Hour.parse("2026-03-01T08").start.timestamp() * 1000)


def clicks_of(*numbers: int) -> list[Record]:
    return [
        Record(number % 3, MILLISECONDS + number, click(f"e{number}", "2026-03-01T08:10:00Z")) for number in numbers
    ]


@pytest.mark.parametrize("name", ["lake", "streams"])
def test_on_a_full_disk_the_stream_ends_with_one_line_and_goes_on_once_there_is_space(
    tmp_path: Path, spark: SparkSession, broker: KafkaBroker, name: str
) -> None:
    home = StreamedHome.in_folder(tmp_path / "home", broker)
    folder: Path = getattr(home.settings, name)
    with small_disk(folder):
        broker.produce(home.topic, clicks_of(*range(6)))
        home.read_all_in(spark)
        broker.produce(home.topic, clicks_of(*range(6, 12)))
        with filled(folder):
            with pytest.raises(ClickmillError, match="No space left on device") as told:
                home.read_all_in(spark)
            assert "\n" not in str(told.value)
            assert len(home.rows(CLICKS)) == 6
        home.read_all_in(spark)
        assert sorted(row["event_id"] for row in home.rows(CLICKS)) == sorted(f"e{number}" for number in range(12))
        assert sum(row["lines"] for row in home.rows(STREAM_BATCHES)) == 12

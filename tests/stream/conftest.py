"""One real broker for the tests of streams; each test has a topic and a lake of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from tests.stream.kafka_broker import KafkaBroker, running_broker
from tests.stream.streamed_lake import StreamedLake
from tests.support.temporary_lake import make_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    """A broker that runs."""
    with running_broker() as broker:
        yield broker


@pytest.fixture
def streamed(tmp_path: Path, spark: SparkSession, broker: KafkaBroker) -> StreamedLake:
    """A lake and an empty topic of 3 partitions."""
    lake = StreamedLake(spark, make_settings(tmp_path / "streamed"), broker, f"clicks-{uuid4()}")
    lake.configure()
    broker.create_topic(lake.topic, 3)
    return lake

"""One real broker for the tests of streams; each test has a topic and a lake of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stream.kafka_broker import KafkaBroker


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    """A broker that runs."""
    with tempfile.TemporaryDirectory(prefix="cm-kafka-") as folder:
        broker = KafkaBroker.in_folder(Path(folder))
        broker.start()
        try:
            yield broker
        finally:
            broker.stop()

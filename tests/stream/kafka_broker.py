"""A real Kafka broker of the tests' own: started, killed and started again on the same data."""

from __future__ import annotations

import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, ResourceType

from ops.broker import answers, prepare, server_command
from tests.support.ports import claimed_port
from tests.support.waiting import wait_until


class Record(NamedTuple):
    """One record: ``timestamp`` is milliseconds since 1970."""

    partition: int
    timestamp: int
    value: bytes | None


@dataclass
class KafkaBroker:
    """One broker and its data folder."""

    folder: Path
    port: int
    controller_port: int
    #: Settings that take the place of those of ``ops.broker``.
    settings: str = ""
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @classmethod
    def in_folder(cls, folder: Path) -> KafkaBroker:
        """A broker that is not yet started, on free ports."""
        return cls(folder, claimed_port(19092, "Kafka"), claimed_port(19192, "Kafka"))

    @property
    def bootstrap_servers(self) -> str:
        """Where it answers."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        settings = prepare(self.folder, self.port, self.controller_port)
        with settings.open("a", encoding="utf-8") as file:
            file.write(self.settings)
        with (self.folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(server_command(settings), stdout=log, stderr=log)
        wait_until(self._answers, "the broker answers", 60)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "broker.log").read_text()[-2000:]
        return answers(self.bootstrap_servers)

    def stop(self, with_signal: signal.Signals = signal.SIGTERM) -> None:
        """End it, by SIGKILL outright."""
        if self._process is not None:
            self._process.send_signal(with_signal)
            self._process.wait(timeout=60)
            self._process = None

    def create_topic(self, topic: str, partitions: int, **settings: str) -> None:
        """A topic; settings as Kafka names them, with _ for the dot."""
        config = {name.replace("_", "."): value for name, value in settings.items()}
        # Records of the tests are dated long ago, and must not be removed for their age.
        unlimited = str(2**62)
        config = {
            "retention.ms": "-1",
            "max.message.bytes": "33554432",
            "message.timestamp.after.max.ms": unlimited,
            "message.timestamp.before.max.ms": unlimited,
        } | config
        admin = self._admin()
        (made,) = admin.create_topics([NewTopic(topic, partitions, 1, config=config)]).values()
        made.result(30)

    def add_partitions(self, topic: str, partitions: int) -> None:
        """Let the topic have so many partitions, more than now."""
        admin = self._admin()
        (made,) = admin.create_partitions([NewPartitions(topic, partitions)]).values()
        made.result(30)

    def configure(self, topic: str, **settings: str) -> None:
        """Set the topic's settings, all others to their defaults."""
        config = {name.replace("_", "."): value for name, value in settings.items()}
        admin = self._admin()
        (done,) = admin.alter_configs([ConfigResource(ResourceType.TOPIC, topic, set_config=config)]).values()
        done.result(30)

    def produce(self, topic: str, records: Iterable[Record]) -> None:
        """Send the records and wait until the broker has them all."""
        failed = []
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 20,
                "message.max.bytes": 33554432,
                "queue.buffering.max.messages": 1_000_000,
            }
        )
        for record in records:
            while True:
                try:
                    producer.produce(
                        topic,
                        value=record.value,
                        partition=record.partition,
                        timestamp=record.timestamp,
                        on_delivery=lambda error, _: failed.append(error) if error else None,
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
        left = producer.flush(120)
        assert not left, f"{left} records not delivered"
        assert not failed, failed[:3]

    def _admin(self) -> AdminClient:
        # To be kept by the caller until it has its answer.
        return AdminClient({"bootstrap.servers": self.bootstrap_servers})


@contextmanager
def running_broker() -> Iterator[KafkaBroker]:
    """A broker that runs until the end."""
    with tempfile.TemporaryDirectory(prefix="cm-kafka-", ignore_cleanup_errors=True) as folder:
        broker = KafkaBroker.in_folder(Path(folder))
        broker.start()
        try:
            yield broker
        finally:
            broker.stop()

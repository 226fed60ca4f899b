"""Where live sample clicks are sent: a Kafka topic, or ports that take a line each and answer when it is stored."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import cycle
from select import select
from typing import Protocol

from confluent_kafka import Producer

#: How long a port that does not answer yet is tried, and the last answers are waited for.
PATIENCE_SECONDS = 30.0


class Lines(Protocol):
    """Takes lines until it is closed."""

    def send(self, lines: Iterable[bytes]) -> None:
        """Send them, and take in what has been answered.

        Raises:
            OSError: if a port is gone.
            BufferError: if a broker is too slow.
        """

    def close(self) -> None:
        """See what has been sent arrive."""


class ToTopic:
    """Records of a topic, evenly over its partitions."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 20, "partitioner": "random"})
        self._topic = topic

    def send(self, lines: Iterable[bytes]) -> None:
        """Hand them to the producer."""
        for line in lines:
            self._producer.produce(self._topic, value=line)
        self._producer.poll(0)

    def close(self) -> None:
        """Wait until all is with the broker."""
        self._producer.flush(10)


class ToPorts:
    """One connection a port, in turn; ``host:port`` each. Answers are read, for who never does is not read either."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._connections = [_connect(address) for address in addresses]
        self._next = cycle(self._connections)

    def send(self, lines: Iterable[bytes]) -> None:
        """Send them, and read what has been answered meanwhile."""
        for line in lines:
            next(self._next).sendall(line + b"\n")
        answered, _, _ = select(self._connections, (), (), 0)
        for connection in answered:
            if not connection.recv(65_536):
                raise ConnectionResetError("the receiver has closed the connection")

    def close(self) -> None:
        """Wait until the receiver has stored all, and so closes the connections in its turn."""
        for connection in self._connections:
            with suppress(OSError), connection:
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65_536):
                    pass


def _connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)

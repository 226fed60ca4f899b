"""The receiver of a test: in a process of its own or in this one, and clients that count what was acknowledged."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from include.settings import REPOSITORY, Settings
from include.sources import load_sources
from ops.receiver.receiver import Receiver
from tests.support.waiting import wait_until

PATIENCE = 60


@dataclass
class Client:
    """One connection: counts what was acknowledged."""

    port: int
    acknowledged: int = 0
    last_id: int = 0
    answers: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.socket = wait_until(self._connected, f"somebody listens on {self.port}", PATIENCE)
        self._answers = self.socket.makefile("r", encoding="ascii")

    def _connected(self) -> socket.socket | None:
        with suppress(OSError):
            return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        return None

    def send(self, *lines: bytes) -> None:
        self.socket.sendall(b"".join(lines))

    def wait_for(self, count: int) -> Client:
        while self.acknowledged < count:
            answer = self._answers.readline()
            if not answer.endswith("\n"):
                raise ConnectionError(f"the receiver ended after {self.acknowledged} of {count} lines")
            self.answers.append(answer)
            status, acknowledged, last_id = answer.split()
            assert status == "stored", answer
            self.acknowledged, self.last_id = int(acknowledged), int(last_id)
        return self

    def close(self) -> None:
        self._answers.close()
        self.socket.close()


@dataclass
class Home:
    """A home whose source web has three ports."""

    settings: Settings
    ports: list[int]

    @property
    def files(self) -> dict[str, bytes]:
        """The landed files by name."""
        landed = self.settings.landing.glob("web/log_date=*/log_hour=*/[0-9]*.log")
        return {file.name: file.read_bytes() for file in sorted(landed)}

    def has_more_files_than(self, before: int) -> bool:
        """Whether one has been completed since."""
        return len(self.files) > before

    def lines(self, port: int | None = None) -> list[bytes]:
        """The landed lines, of all ports or of one."""
        files = [content for name, content in self.files.items() if port is None or name.startswith(f"{port}-")]
        return [line for content in files for line in content.splitlines()]

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-m", "clickmill", "receive", "--source", "web"]

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {
            "CLICKMILL_HOME": str(self.settings.home),
            "CLICKMILL_SOURCES": str(self.settings.sources_file),
            "CLICKMILL_DATA": str(self.settings.data_folder or ""),
            "CLICKMILL_LOCKS": self.settings.locks_database or "",
        }

    def start(self) -> subprocess.Popen[bytes]:
        """The receiver, as a process."""
        log = (self.settings.home / "receiver.log").open("ab")
        return subprocess.Popen(self.command, env=self.environment, cwd=REPOSITORY, stdout=log, stderr=log)

    @contextmanager
    def running(self, **injected: object) -> Iterator[None]:
        """The receiver in this process, with a clock or a disk of the test's."""
        receiver = Receiver(self.settings, load_sources(self.settings)["web"], **injected)  # type: ignore[arg-type]
        receiver.prepare()
        loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        failures: list[BaseException] = []

        async def run() -> None:
            asked_to_end = asyncio.Event()
            loops.append((asyncio.get_running_loop(), asked_to_end))
            await receiver.run(asked_to_end)

        def run_all() -> None:
            try:
                asyncio.run(run())
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run_all)
        thread.start()
        try:
            wait_until(lambda: bool(loops), "it runs")
            yield
        finally:
            loop, asked_to_end = loops[0]
            loop.call_soon_threadsafe(asked_to_end.set)
            thread.join(PATIENCE)
        assert not failures, failures

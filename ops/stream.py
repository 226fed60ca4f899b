"""A stream to look at: `make stream` starts a broker, sample clicks and the stream, and shows what it does.

Until Ctrl-C, which ends all that it has started. With SOURCE, any streamed source: a topic of the embedded broker gets
sample clicks; one of another broker, and files of the landing zone, are streamed as they are; for a source with sockets
the receiver is started unless it runs, and sample clicks are sent when RATE is given. `clickmill
stop-streams` ends what was left behind.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, NoReturn

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.console import Console
from rich.live import Live

from include.errors import ClickmillError, UsageError
from include.home import REPOSITORY
from include.settings import Settings
from include.sources import ClickSockets, KafkaTopic, Source, stream_of
from include.streams.kafka import topic_of
from ops.broker import start_broker, stop_broker
from ops.home import find_home
from ops.receive import is_received
from ops.services.logs import last_lines
from ops.services.start import start
from ops.services.stop import status, stop
from ops.services.supervisor import end_marked
from ops.stream_state import stream_state
from ops.stream_view import render

DEFAULT_RATE = 200
#: Carried by the processes of a home's stream, so that stop-streams finds them.
MARK = "CLICKMILL_STREAM_OF"
REFRESH_SECONDS = 1.0
#: A stream that is asked to end may have a micro-batch to finish.
PATIENCE_SECONDS = 60.0


def make_topic(bootstrap_servers: str, topic: KafkaTopic) -> None:
    """Make the topic in the embedded broker, if it is not there; records get the time at which they arrive.

    Raises:
        ClickmillError: if the broker refuses.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    if topic.topic in admin.list_topics(timeout=10).topics:
        return
    config = {"message.timestamp.type": "LogAppendTime"}
    (made,) = admin.create_topics([NewTopic(topic.topic, topic.partitions, 1, config=config)]).values()
    try:
        made.result(30)
    except KafkaException as error:
        raise ClickmillError(f"topic {topic.topic} cannot be made: {error.args[0].str()}") from None


@contextmanager
def running(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process until the end of the block, then asked to end and waited for."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], env=dict(environment), cwd=REPOSITORY, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Part(NamedTuple):
    """One process of a stream that is shown; its log is named after it."""

    process: subprocess.Popen[bytes]
    log: Path

    def require_running(self) -> None:
        """Nothing, as long as it runs.

        Raises:
            ClickmillError: with the end of its log.
        """
        if self.process.poll() is not None:
            raise ClickmillError("\n".join([*last_lines(self.log), f"{self.log.stem} has ended; see {self.log}"]))


def run(source: Source, rate: float | None, console: Console) -> int:
    """Start everything, show it until interrupted, end it; returns the exit code."""
    home = find_home()
    settings = Settings.from_environment()
    stream_of(source)
    if rate is not None and source.sockets is None and not _is_embedded(source, settings):
        raise UsageError(f"RATE={rate:g}: {source.name} is streamed as it is, without sample clicks; leave RATE out")
    with ExitStack() as stack:
        if not status(home.path):
            console.print("starting Spark Connect and Airflow")
            stack.callback(stop, home.path)
        environment = os.environ | start(home.path).environment() | {MARK: str(home.path)}
        commands: dict[str, list[str]] = {}
        if _is_embedded(source, settings):
            console.print("starting the embedded Kafka broker")
            address = start_broker(home.path)
            stack.callback(stop_broker, home.path)
            make_topic(address, topic_of(source))
            to = ["--bootstrap-servers", address, "--topic", topic_of(source).topic]
            commands["live-clicks"] = ["samples.live_clicks", *to, "--rate", str(rate or DEFAULT_RATE)]
        elif source.sockets is not None:
            commands |= _receiving(settings, source.name, source.sockets, rate, console)
        commands[f"stream-{source.name}"] = ["clickmill", "stream", "--source", source.name]
        parts = []
        for name, command in commands.items():
            log = home.logs / f"{name}.log"
            parts.append(Part(stack.enter_context(running(command, environment, log)), log))
        try:
            _show(parts, settings, source, console)
        except KeyboardInterrupt:
            console.print("ending the stream")
            return 0


def _receiving(
    settings: Settings, source: str, sockets: ClickSockets, rate: float | None, console: Console
) -> dict[str, list[str]]:
    """The commands, by their log's name, that receive the source's lines, and send sample clicks if a rate is given."""
    commands = {}
    if not is_received(settings, source):
        commands[f"receiver-{source}"] = ["clickmill", "receive", "--source", source]
    ports = ",".join(f"{sockets.host}:{port}" for port in sockets.ports)
    if rate is None:
        console.print(f"send clicks to {ports}, one a line; RATE={DEFAULT_RATE} sends sample clicks")
    else:
        commands["live-clicks"] = ["samples.live_clicks", "--ports", ports, "--rate", str(rate)]
    return commands


def _is_embedded(source: Source, settings: Settings) -> bool:
    """Whether the source is a topic of the embedded broker."""
    return source.kafka is not None and source.kafka.bootstrap_servers is None and settings.kafka is None


def _show(parts: Sequence[Part], settings: Settings, source: Source, console: Console) -> NoReturn:
    keys = list(settings.pipeline.counts)
    began = time.monotonic()
    with Live(console=console, auto_refresh=False) as view:
        while True:
            for part in parts:
                part.require_running()
            state = stream_state(settings, source.name, keys, datetime.now(UTC))
            view.update(render(source.name, state, time.monotonic() - began), refresh=True)
            time.sleep(REFRESH_SECONDS)


def rate_of(text: str) -> float | None:
    """Clicks a second; None where none are given.

    Raises:
        UsageError: if it is no such number.
    """
    try:
        rate = float(text) if text else None
    except ValueError:
        rate = 0.0
    if rate is not None and not 0 < rate <= 1_000_000:
        raise UsageError(f"RATE={text}: expected clicks a second, above 0 and up to 1000000")
    return rate


def stop_marked() -> str:
    """End what a stream that was shown has left behind; a line on it."""
    ended = end_marked(find_home(), PATIENCE_SECONDS, MARK)
    stop_broker()
    return f"ended {ended} processes of streams" if ended else "no stream ran"

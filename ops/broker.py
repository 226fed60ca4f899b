"""The embedded Kafka broker: one real broker (KRaft) of a home, on loopback only, for demonstrations and tests.

It is started where a source in config/sources.toml names no broker of its own: `start_broker(home)` from Python; under
supervisord, beside the other services, `python -m ops.broker` chooses its ports, writes its settings and becomes it.
"""

from __future__ import annotations

import os
import subprocess
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import NoReturn

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from include.command import exit_with
from include.errors import ClickmillError, UsageError
from include.home import REPOSITORY
from ops.home import find_home
from ops.services.beside import runs_beside, start_beside, stop_beside
from ops.services.ports import PortChooser
from ops.services.programs import BROKER
from ops.setup.class_data import BROKER_CLASSES, class_path
from ops.setup.prerequisites import find_java

HEAP = "512m"
START_SECONDS = 60.0

# One broker that is its own controller. Sources: Apache Kafka 4.1, "KRaft" and "Broker Configs".
_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
# A message as large as any that a client may send by mistake reaches the stream, which quarantines it.
message.max.bytes=33554432
socket.request.max.bytes=104857600
"""


def prepare(folder: Path, port: int, controller_port: int) -> Path:
    """Write the broker's settings into its folder and, once, format its storage; returns the settings file.

    Raises:
        ClickmillError: if the storage cannot be formatted, or the broker's JARs are not there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings, data = folder / "server.properties", folder / "data"
    settings.write_text(_SETTINGS.format(port=port, controller_port=controller_port, data=data), encoding="utf-8")
    if not (data / "meta.properties").exists():
        cluster_id = "-"
        while cluster_id.startswith("-"):  # would be read as an option; Kafka's own random ids never do
            cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        answer = subprocess.run(
            [*java_command("64m"), "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(settings)],
            capture_output=True,
            text=True,
        )
        if answer.returncode != 0:
            raise ClickmillError(
                f"Kafka's storage in {data} cannot be formatted: {(answer.stdout + answer.stderr).strip()}"
            )
    return settings


def java_command(heap: str = HEAP) -> list[str]:
    """The start of a command that runs one of Kafka's classes.

    Raises:
        UsageError: when set-up has not fetched the broker's JARs.
    """
    jars = BROKER_CLASSES.jars(REPOSITORY)
    if not any(jar.name.startswith("kafka_") for jar in jars):
        raise UsageError("the embedded Kafka broker is not installed: run: python3 -m ops.bootstrap --broker")
    logging = REPOSITORY / "config" / "broker-log4j2.properties"
    options = [f"-Xmx{heap}", *BROKER_CLASSES.java_options(REPOSITORY), f"-Dlog4j2.configurationFile={logging}"]
    return [str(find_java()), *options, "-cp", class_path(jars)]


def server_command(settings: Path) -> list[str]:
    """The command that is the broker; SIGTERM ends it in order."""
    return [*java_command(), "kafka.Kafka", str(settings)]


def answers(bootstrap_servers: str) -> bool:
    """Whether a broker answers there."""
    try:
        client = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
        return bool(client.list_topics(timeout=2).brokers)
    except KafkaException:
        return False


def start_broker(home: Path | str | None = None) -> str:
    """Start the embedded broker of a home whose services run, and wait until it answers; returns its address.

    Raises:
        ClickmillError: if it does not come up.
    """
    place = find_home(home)
    file = place.broker_file
    if not runs_beside(place, BROKER):
        file.unlink(missing_ok=True)  # of a broker that was killed: another may answer there now
    start_beside(place, BROKER, START_SECONDS, lambda: file.exists() and answers(_address(file)))
    return _address(file)


def _address(file: Path) -> str:
    return file.read_text(encoding="utf-8").strip()


def stop_broker(home: Path | str | None = None) -> None:
    """End the embedded broker of a home; its topics stay."""
    place = find_home(home)
    stop_beside(place, BROKER)
    place.broker_file.unlink(missing_ok=True)


def main() -> NoReturn:
    """Become the broker of the home in CLICKMILL_HOME."""
    home = find_home()
    with PortChooser(os.environ) as chooser:
        port = chooser.choose("CLICKMILL_KAFKA_PORT", 9092, "Kafka")
        controller_port = chooser.choose("CLICKMILL_KAFKA_CONTROLLER_PORT", 9093, "Kafka's controller")
        settings = prepare(home.kafka_topics, port, controller_port)
        home.broker_file.write_text(f"127.0.0.1:{port}\n", encoding="utf-8")
        command = server_command(settings)
    os.execv(command[0], command)


if __name__ == "__main__":
    exit_with(main, "broker")

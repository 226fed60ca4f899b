"""The peer of the stream: Kafka Streams makes the same live counts of the same topic."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from include.settings import REPOSITORY
from ops.broker import java_command
from ops.setup.jars import BENCH_JARS_LOCK, BROKER_JARS_LOCK, JAR_FOLDERS, install_jars
from ops.setup.prerequisites import find_java

_PROGRAM = Path(__file__).with_name("KafkaStreamsCounts.java")


class Counted(NamedTuple):
    """What Kafka Streams has done: records and counts, and seconds from the first record to the last count."""

    records: int
    counted: int
    seconds: float
    processor_seconds: float


def count(bootstrap_servers: str, topic: str, partitions: int, records: int, folder: Path) -> Counted:
    """Count a topic's clicks to its end; ``folder`` is for the program and its state.

    Raises:
        subprocess.CalledProcessError: if the program does not compile, or fails.
    """
    java = find_java()
    install_jars(REPOSITORY, java, lock=BENCH_JARS_LOCK)
    folders = [REPOSITORY / JAR_FOLDERS[lock] for lock in (BENCH_JARS_LOCK, BROKER_JARS_LOCK)]
    rocksdb = next((REPOSITORY / ".venv").glob("lib/python3*/site-packages/pyspark/jars/rocksdbjni-*.jar"))
    jars = [str(jar) for jar in [rocksdb, *(jar for folder in folders for jar in folder.glob("*.jar"))]]
    (compiler,) = folders[0].glob("ecj-*.jar")
    classes = folder / "classes"
    subprocess.run(
        [str(java), "-jar", str(compiler), "-17", "-nowarn", "-cp", os.pathsep.join(jars), "-d", str(classes),
         str(_PROGRAM)],
        check=True,
    )  # fmt: skip
    command = java_command("2g")
    command[command.index("-cp") + 1] = os.pathsep.join([str(classes), *jars])
    threads = min(partitions, os.cpu_count() or 1)
    arguments = [bootstrap_servers, topic, str(partitions), str(records), str(folder / "state"), str(threads)]
    answer = subprocess.run(
        [*command, "KafkaStreamsCounts", *arguments], check=True, stdout=subprocess.PIPE, text=True, timeout=600
    )
    return Counted(**json.loads(answer.stdout.splitlines()[-1]))

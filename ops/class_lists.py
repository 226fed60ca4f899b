"""Write the lists of classes that set-up archives (ops/setup/class_data.py): `make class-lists`.

They are what Spark's server and the embedded broker load while two hours of sample logs and a minute of a stream are
processed. To do after a change of JARs: a list that is out of date costs time at a start, nothing else.
"""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from include.command import exit_with
from include.errors import ClickmillError
from include.home import REPOSITORY
from ops.setup.class_data import BROKER_CLASSES, SPARK_CLASSES, ClassData

STREAM_SECONDS = 60
#: A class that no other of the JVMs loads that are started.
_KNOWN_BY = {
    SPARK_CLASSES: "org/apache/spark/sql/connect/service/SparkConnectService",
    BROKER_CLASSES: "kafka/server/KafkaRaftServer",
}
#: Comments; and lambdas of Java's own classes: a Java of another version crashes over those that it does not have.
_LEFT_OUT = ("#", *(f"@lambda-proxy {package}/" for package in ("java", "javax", "jdk", "sun", "com/sun")))


def main() -> None:
    """Run both, in a home of their own, and write what was loaded.

    Raises:
        ClickmillError: if one of them fails, or lists of it are not there.
    """
    for data in _KNOWN_BY:
        # Of a class that comes from an archive less is listed. Set-up makes it again.
        data.archive(REPOSITORY).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="clickmill-classes-") as folder:
        recording = {"JDK_JAVA_OPTIONS": f"-XX:DumpLoadedClassList={folder}/%p.lst"}
        environment = os.environ | recording | {"CLICKMILL_HOME": f"{folder}/home", "HOURS": "2", "CLICKS": "1000"}
        try:
            _work(environment)
        finally:
            subprocess.run([sys.executable, "-m", "clickmill", "stop"], env=environment, check=False)
        lists = [file.read_text(encoding="utf-8").splitlines() for file in Path(folder).glob("*.lst")]
    for data, name in _KNOWN_BY.items():
        _write(data, [lines for lines in lists if name in lines])


def _work(environment: Mapping[str, str]) -> None:
    if subprocess.run([sys.executable, "-m", "clickmill", "run"], env=environment).returncode:
        raise ClickmillError("the sample was not processed; its lines above say why")
    stream = subprocess.Popen([sys.executable, "-m", "clickmill", "show-stream"], env=environment)
    try:
        stream.wait(STREAM_SECONDS)
    except subprocess.TimeoutExpired:
        stream.send_signal(signal.SIGINT)
    if stream.wait():
        raise ClickmillError("the stream has failed; its lines above say why")


def _write(data: ClassData, lists: list[list[str]]) -> None:
    if len(lists) != 1:
        raise ClickmillError(f"{len(lists)} JVMs loaded the classes of {data.program}: expected one")
    lines = sorted({line for line in lists[0] if not line.startswith(_LEFT_OUT)})
    # Without a time: the same list is the same file.
    (REPOSITORY / data.classes).write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))
    print(f"class lists: {data.classes}, {len(lines)} lines")


if __name__ == "__main__":
    exit_with(main, "class-lists")

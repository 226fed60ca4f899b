"""The Spark Connect server of a home: an application that spark-submit runs until it is ended.

Spark has a main class for this, which gives every session a class loader of its own, and with it compiled code of its
own: each task compiles again what the task before it has compiled. The plugin (config/spark-defaults.conf) does as the
settings say. See docs/performance.md, lesson 2.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from filelock import FileLock, Timeout
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from include.command import exit_with
from include.errors import ClickmillError
from ops.home import Home, find_home

#: How long the next server waits for one that was killed: its JVM is gone, this process of it not yet.
PATIENCE_SECONDS = 20


@contextmanager
def the_only_server(home: Home) -> Iterator[None]:
    """Be the only Spark server of the home's lake, on any machine that shares it, until the end of the process.

    Raises:
        ClickmillError: if the lake has one: of two, Delta would lose commits without an error.
    """
    home.locks.mkdir(parents=True, exist_ok=True)
    holder = home.locks / "spark-server.json"
    lock = FileLock(home.locks / "spark-server.lock", timeout=PATIENCE_SECONDS)
    try:
        lock.acquire()
    except Timeout:
        said = holder.read_text(encoding="utf-8").strip() if holder.exists() else "who, is not known"
        raise ClickmillError(
            f"the lake {home.lake} has a Spark Connect server already: {said}; "
            "of two, Delta would lose commits. Use that one (SPARK_REMOTE), or end it first"
        ) from None
    try:
        named = {"host": socket.gethostname(), "pid": os.getpid(), "since": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}"}
        fresh = holder.with_suffix(".fresh")
        fresh.write_text(json.dumps(named) + "\n", encoding="utf-8")
        fresh.replace(holder)
        yield
    finally:
        lock.release()


def main() -> None:
    """Start Spark, and with it the plugin; hold both until the JVM ends, in whatever way."""
    home = find_home()
    with the_only_server(home):
        # The JVM, which is told to end too, may still write: the lake is held until it has ended.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        # What killed jobs have left.
        shutil.rmtree(home.scratch, ignore_errors=True)
        spark = SparkSession.builder.getOrCreate()
        print("Spark Connect server started", flush=True)
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        with suppress(Py4JError):
            jvm.java.lang.Thread.currentThread().join()


if __name__ == "__main__":
    exit_with(main, "spark-connect")

"""The Spark Connect server of a home: an application that spark-submit runs until it is ended.

Spark has a main class for this, which gives every session a class loader of its own, and with it compiled code of its
own: each task compiles again what the task before it has compiled. The plugin (config/spark-defaults.conf) does as the
settings say. See docs/performance.md, lesson 2.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from filelock import FileLock, Timeout
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
        raise ClickmillError(
            f"the lake {home.lake} has a Spark Connect server already: {holder.read_text(encoding='utf-8').strip()}; "
            "of two, Delta would lose commits. Use that one (SPARK_REMOTE), or end it first"
        ) from None
    with lock:
        said = {"host": socket.gethostname(), "pid": os.getpid(), "since": datetime.now(UTC).isoformat(" ", "seconds")}
        holder.write_text(json.dumps(said) + "\n", encoding="utf-8")
        yield


def main() -> None:
    """Start Spark, and with it the plugin; hold both until the JVM ends, in whatever way."""
    home = find_home()
    with the_only_server(home):
        # What killed jobs have left.
        shutil.rmtree(home.scratch, ignore_errors=True)
        spark = SparkSession.builder.getOrCreate()
        print("Spark Connect server started", flush=True)
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        jvm.java.lang.Thread.currentThread().join()


if __name__ == "__main__":
    exit_with(main, "spark-connect")

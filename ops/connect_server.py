"""The Spark Connect server of a home: an application that spark-submit runs until it is ended.

Spark has a main class for this, which gives every session a class loader of its own, and with it compiled code of its
own: each task compiles again what the task before it has compiled. The plugin (config/spark-defaults.conf) does as the
settings say. See docs/performance.md, lesson 2.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from include.command import exit_with
from include.errors import ClickmillError, LockHeldError, LockLostError, UsageError
from include.locks import Held, locks_of
from include.storage import remove_folder
from ops.home import Home, find_home

#: How long the next server waits for one that was killed: its JVM is gone, this process of it not yet.
PATIENCE_SECONDS = 20
#: How often it looks whether its lock is held still: a server takes longer to start.
_LOOK_MILLISECONDS = 3000


@contextmanager
def the_only_server(home: Home) -> Iterator[Held]:
    """Be the only Spark server of the home's lake, on any machine that shares it, until the end of the process.

    Raises:
        ClickmillError: if the lake has one: of two, Delta would lose commits without an error.
    """
    try:
        with locks_of(home).held("spark-server", PATIENCE_SECONDS) as lock:
            yield lock
    except LockHeldError as error:
        raise ClickmillError(
            f"the lake {home.lake} has a Spark Connect server already: {error}; "
            "of two, Delta would lose commits. Use that one (SPARK_REMOTE), or end it first"
        ) from None


def require_safe_commits(setting: Callable[[str], str | None]) -> None:
    """See to it that Spark puts no object over another: Delta's commits would be lost without an error.

    Raises:
        UsageError: if Hadoop's settings for S3 say that it does.
    """
    flags = {flag.strip() for flag in (setting("fs.s3a.performance.flags") or "").lower().split(",")}
    for name, is_unsafe in (
        ("fs.s3a.performance.flags", bool(flags & {"create", "*"})),
        ("fs.s3a.create.performance", (setting("fs.s3a.create.performance") or "").lower() == "true"),
    ):
        if is_unsafe:
            raise UsageError(
                f"{name} is {setting(name)}: with it Spark overwrites commits of Delta's, and loses them without an "
                "error; expected none of 'create'; take it out of config/spark-defaults.conf"
            )


def main() -> None:
    """Start Spark, and with it the plugin; hold both until the JVM ends, in whatever way."""
    home = find_home()
    with the_only_server(home) as lock:
        # The JVM, which is told to end too, may still write: the lake is held until it has ended.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        # What killed jobs have left.
        remove_folder(home.scratch)
        spark = SparkSession.builder.getOrCreate()
        require_safe_commits(spark.sparkContext._jsc.hadoopConfiguration().get)
        print("Spark Connect server started", flush=True)
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        with suppress(Py4JError):
            while True:
                jvm.java.lang.Thread.currentThread().join(_LOOK_MILLISECONDS)
                try:
                    lock.require()
                except LockLostError as error:
                    # Said first: the JVM prints it. It ends sooner than another server that has the lock now can write.
                    print(f"spark-connect: {error}", file=sys.stderr, flush=True)
                    time.sleep(0.2)
                    jvm.java.lang.Runtime.getRuntime().halt(1)


if __name__ == "__main__":
    exit_with(main, "spark-connect")

"""The Spark Connect server of a home: an application that spark-submit runs until it is ended.

Spark has a main class for this, which gives every session a class loader of its own, and with it compiled code of its
own: each task compiles again what the task before it has compiled. The plugin (config/spark-defaults.conf) does as the
settings say. See docs/performance.md, lesson 2.
"""

from __future__ import annotations

import signal
from contextlib import suppress

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from include.command import exit_with
from include.only_spark import LOOK_SECONDS, halt_without, require_safe_commits, the_only_spark
from include.storage import remove_folder
from ops.home import find_home


def main() -> None:
    """Start Spark, and with it the plugin; hold both until the JVM ends, in whatever way."""
    home = find_home()
    with the_only_spark(home) as lock:
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
                jvm.java.lang.Thread.currentThread().join(1000 * LOOK_SECONDS)
                halt_without(lock, jvm)


if __name__ == "__main__":
    exit_with(main, "spark-connect")

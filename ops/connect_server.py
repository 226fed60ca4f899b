"""The Spark Connect server of a home: an application that spark-submit runs until it is ended.

Spark has a main class for this, which gives every session a class loader of its own, and with it compiled code of its
own: each task compiles again what the task before it has compiled. The plugin (config/spark-defaults.conf) does as the
settings say. See docs/performance.md, lesson 2.
"""

from __future__ import annotations

from pyspark.sql import SparkSession


def main() -> None:
    """Start Spark, and with it the plugin; hold both until the JVM ends, in whatever way."""
    spark = SparkSession.builder.getOrCreate()
    print("Spark Connect server started", flush=True)
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    jvm.java.lang.Thread.currentThread().join()


if __name__ == "__main__":
    main()

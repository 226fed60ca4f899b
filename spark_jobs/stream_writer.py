"""How every stream of Clickmill is started: state in RocksDB, a checkpoint of its own, a trigger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

#: What a stream's session needs besides what every job relies on.
STREAM_CONF = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # A batch's changes are uploaded, not all files of the state.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # All states of the server together take so much memory outside the heap and no more, whatever number of keys.
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": "500",
    # It would refuse to sort a micro-batch before the state looks at it: see first_arrivals.
    "spark.sql.streaming.unsupportedOperationCheck": "false",
}

#: How often the start of a query is tried.
_TRIES = 6


def start_writer(
    spark: SparkSession,
    writer: DataStreamWriter,
    checkpoint: Path,
    *,
    state_partitions: int,
    trigger_seconds: float | None,
) -> StreamingQuery:
    """Start a query where it left off; without a trigger it reads what is there, then ends."""
    for name, value in STREAM_CONF.items():
        spark.conf.set(name, value)
    spark.conf.set("spark.sql.shuffle.partitions", state_partitions)
    writer = writer.option("checkpointLocation", str(checkpoint))
    if trigger_seconds is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{trigger_seconds} seconds")
    for _ in range(_TRIES - 1):
        with _tolerated_slow_worker():
            return writer.start()
    return writer.start()


@contextmanager
def _tolerated_slow_worker() -> Iterator[None]:
    """On a busy machine a Python worker takes longer to import its packages than the 10 s that Spark waits for it."""
    try:
        yield
    except PySparkException as error:
        if "failed to connect back" not in str(error):
            raise

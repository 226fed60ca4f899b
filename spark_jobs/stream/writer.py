"""How every stream of Clickmill is started: state in RocksDB, a checkpoint of its own, a trigger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_jobs.stream.checkpoint import StreamCheckpoint
from spark_jobs.stream.fence import FencedWork

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
    # It would refuse to sort a micro-batch: see repartition_by_id.
    "spark.sql.streaming.unsupportedOperationCheck": "false",
}

#: How often a query says that it has found nothing to read, in milliseconds.
_IDLE_INTERVAL = "spark.sql.streaming.noDataProgressEventInterval"
#: How often the start of a query is tried: for three minutes, beside backfills on a machine of two cores.
_TRIES = 18
_PASSING = ("failed to connect back", "queries are concurrently using metadata")
#: Two starts of a query at the same moment, while a third ran: what Spark then notes as the query that runs never
#: does, so that it refuses each later start too.
_REFUSED_FOR_GOOD = "[CONCURRENT_QUERY]"


def start_writer(
    spark: SparkSession,
    writer: DataStreamWriter,
    work: FencedWork,
    checkpoint: StreamCheckpoint,
    *,
    state_partitions: int,
    trigger_seconds: float | None,
) -> StreamingQuery:
    """Start a query where it left off; its work has the checkpoint's newest fence.

    Without a trigger it reads what is there, then ends. Such a one always says last that it has found no more: without
    that it has been ended before.
    """
    for name, value in STREAM_CONF.items():
        spark.conf.set(name, value)
    spark.conf.set("spark.sql.shuffle.partitions", state_partitions)
    writer = writer.foreachBatch(work).option("checkpointLocation", str(checkpoint.folder))
    if trigger_seconds is None:
        spark.conf.set(_IDLE_INTERVAL, 0)
        writer = writer.trigger(availableNow=True)
    else:
        spark.conf.unset(_IDLE_INTERVAL)
        writer = writer.trigger(processingTime=f"{trigger_seconds} seconds")
    for _ in range(_TRIES - 1):
        with _tried_again(checkpoint):
            return writer.start()
    return writer.start()


@contextmanager
def _tried_again(checkpoint: StreamCheckpoint) -> Iterator[None]:
    """Pass over what fails the start of a query once and not for good.

    On a busy machine a Python worker takes longer to import its packages than the 10 s that Spark waits for it. And a
    start that a killed process has asked for may make the checkpoint at the same moment, or be started.
    """
    try:
        yield
    except PySparkException as error:
        if _REFUSED_FOR_GOOD in str(error):
            checkpoint.renew_query_id()
        elif not any(passing in str(error) for passing in _PASSING):
            raise

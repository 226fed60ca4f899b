"""The Spark session of a job.

Of the warm Spark Connect server of this home, or the one that ``SPARK_REMOTE`` names; or of a driver of the job's own,
where spark-submit runs it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Event, Thread

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from include.errors import ClickmillError, UsageError
from include.locks import Held
from include.only_spark import LOOK_SECONDS, halt_without, require_safe_commits, the_only_spark
from include.settings import Settings
from include.storage import remove_folder

#: What every job relies on, whatever the server's defaults are.
SESSION_CONF = {
    # A click hour is a UTC hour, wherever Spark runs.
    "spark.sql.session.timeZone": "UTC",
    # Sketches are kept in memory for that many keys a task before sorting is resorted to.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
    # Java does not compile methods above 8,000 bytes of code to machine code, so Spark had better not make them.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # Files are named one by one (Lake.read_files), and folders listed for each micro-batch of a stream: by the driver,
    # which takes milliseconds, not by a Spark job.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
    # Rows go to Python so many at a time. By default Spark asks after each row how many bytes there are, which of a
    # column with arrays takes longer than all else: 2 million rows of counts were written in 45 s of processor time, in
    # 4 s by this. So many: ``_begun``, and of a stream by how long its lines may be, also in its micro-batches.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    # To end a streaming query: Spark waits without end by default. The error says what its thread is doing.
    "spark.sql.streaming.stopTimeout": "45s",
}
#: Of texts of 64 KiB there are 64 MiB together, as by default.
_ROWS_TO_PYTHON = 1024
#: By which Spark makes partitions of the files that it reads.
_PARTS_OF_FILES = ("spark.sql.files.openCostInBytes", "spark.sql.files.maxPartitionBytes")


def configure(spark: SparkSession) -> SparkSession:
    """Set what the jobs rely on."""
    if is_remote():
        from spark_jobs.engine.lost_server import be_patient

        be_patient(spark.client)
    for name, value in SESSION_CONF.items():
        spark.conf.set(name, value)
    return spark


def _begun(spark: SparkSession) -> SparkSession:
    """Configure a session that begins. What it sets beside that a query of its own may set otherwise."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", _ROWS_TO_PYTHON)
    return configure(spark)


@contextmanager
def session_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of the session that hold until the end."""
    before = {name: str(spark.conf.get(name)) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def files_kept_whole(spark: SparkSession) -> AbstractContextManager[None]:
    """What the session reads until the end: one file, one partition, whatever their sizes.

    Not longer than needed: a task for each file makes reading many small ones take twice as long.
    """
    return session_settings(spark, dict.fromkeys(_PARTS_OF_FILES, str(1 << 50)))


@contextmanager
def spark_session(settings: Settings) -> Iterator[SparkSession]:
    """A configured session, ended at the end.

    Raises:
        UsageError: if no server is known, or spark-submit was given settings with which commits are lost.
        ClickmillError: if the server does not answer, or spark-submit runs this and the lake has a driver already.
    """
    with _own_driver(settings) if _is_submitted() else _connected(settings) as spark:
        yield spark


def _is_submitted() -> bool:
    """Whether spark-submit has started this process, and a JVM beside it."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


@contextmanager
def _own_driver(settings: Settings) -> Iterator[SparkSession]:
    if "SPARK_REMOTE" in os.environ:
        raise UsageError("SPARK_REMOTE is set, but a job that spark-submit runs has a driver of its own: unset it")
    # pyspark would look for a server.
    os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)
    with the_only_spark(settings) as lock:
        # Ends by the block's end: Spark first, then the lock.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        # What killed jobs have left.
        remove_folder(settings.scratch)
        spark = SparkSession.builder.getOrCreate()
        ended = Event()
        Thread(target=_watch, args=(lock, spark, ended), daemon=True).start()
        try:
            require_safe_commits(spark.sparkContext._jsc.hadoopConfiguration().get)
            yield _begun(spark)
        finally:
            ended.set()
            spark.stop()


def _watch(lock: Held, spark: SparkSession, ended: Event) -> None:
    """End the driver as soon as its lock is lost; with the JVM, what this process asks of it fails."""
    with suppress(Py4JError):
        while not ended.wait(LOOK_SECONDS):
            halt_without(lock, spark.sparkContext._jvm)


@contextmanager
def _connected(settings: Settings) -> Iterator[SparkSession]:
    spark = open_session(settings)
    try:
        yield spark
    finally:
        spark.stop()


def open_session(settings: Settings) -> SparkSession:
    """A configured session of the Spark Connect server; ``stop()`` it when done.

    Raises:
        UsageError: if no server is known.
        ClickmillError: if the server does not answer.
    """
    remote = os.environ.get("SPARK_REMOTE") or _remote_of(settings)
    from spark_jobs.engine.lost_server import require_answer

    require_answer(remote)
    try:
        return _begun(SparkSession.builder.remote(remote).getOrCreate())
    except PySparkException as error:
        raise ClickmillError(
            f"the Spark Connect server does not answer ({str(error).splitlines()[0]}); start it with: clickmill start"
        ) from error


def _remote_of(settings: Settings) -> str:
    file = settings.spark_remote_file
    try:
        return file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise UsageError(
            f"no Spark Connect server is known: {file} is absent and SPARK_REMOTE is not set; "
            "start one with: clickmill start"
        ) from None


def core_count(spark: SparkSession) -> int:
    """How many tasks this Spark runs in parallel, by default: it cuts its own rows into so many partitions."""
    from pyspark.sql import functions as F

    return spark.range(4096).select(F.spark_partition_id()).distinct().count()

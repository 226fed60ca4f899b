"""A job as one runs it in a shell: a process of its own, with what it and the Spark server took."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.spark_watch import SparkWatch
from include.home import REPOSITORY


@dataclass(frozen=True)
class JobRun:
    """Seconds, processor seconds of the job and of Spark, and the largest memory of each, in MiB; its exit code.

    ``largest_mebibytes`` is that of one process of Spark's.
    """

    seconds: float
    own_processor: float
    spark_processor: float
    own_mebibytes: float
    spark_mebibytes: float
    largest_mebibytes: float
    exit_code: int


def run_job(
    arguments: list[str], home: Path, spark_remote: str, workers: Sequence[psutil.Process] = (), **more: str
) -> JobRun:
    """Run ``clickmill`` with these arguments; ``more`` are variables of its environment.

    Of a cluster its ``workers`` are Spark too.
    """
    environment = {**os.environ, "CLICKMILL_HOME": str(home), "SPARK_REMOTE": spark_remote, **more}
    watch = SparkWatch(home, workers)
    before, began = watch.processor_seconds(), time.perf_counter()
    command = [sys.executable, "-m", "clickmill", *arguments]
    process = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=sys.stderr)
    _, status, used = os.wait4(process.pid, 0)
    return JobRun(
        seconds=time.perf_counter() - began,
        own_processor=used.ru_utime + used.ru_stime,
        spark_processor=watch.processor_seconds() - before,
        own_mebibytes=used.ru_maxrss / 1024,
        spark_mebibytes=watch.stop(),
        largest_mebibytes=watch.largest_mebibytes,
        exit_code=os.waitstatus_to_exitcode(status),
    )

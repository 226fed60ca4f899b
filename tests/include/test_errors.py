"""Which of the errors that are raised somewhere below are of a full disk, which of a Spark server that has gone."""

from __future__ import annotations

import errno
import sqlite3

import pytest
from deltalake.exceptions import DeltaError
from grpc import StatusCode
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.connect import AnalysisException, SparkConnectException, SparkConnectGrpcException

from include.errors import ClickmillError, DiskFullError, SparkGoneError, UsageError, in_one_line

DELTA_RS = """\
Generic LocalFileSystem error
  \x1b[31m↳\x1b[0m Unable to copy data to file
  \x1b[31m↳\x1b[0m No space left on device (os error 28)"""
SPARK = """\
Job aborted due to stage failure: Task 0 in stage 4.0 failed 1 times
\tat org.apache.spark.scheduler.DAGScheduler
Caused by: java.io.IOException: No space left on device
\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)"""


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/data/run/staged/x"), "device /data/run/staged/x"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "Disk quota exceeded"),
        (DeltaError(DELTA_RS), "full: No space left on device (os error 28)"),
        (OSError(DELTA_RS), "full: No space left on device (os error 28)"),
        (SparkConnectGrpcException(SPARK), "full: Caused by: java.io.IOException: No space left on device;"),
        (sqlite3.OperationalError("database or disk is full"), "database or disk is full"),
    ],
)
def test_a_full_disk_is_one_line(error: Exception, message: str) -> None:
    line = in_one_line(error)
    assert isinstance(line, DiskFullError)
    assert message in str(line)
    assert "\n" not in str(line)
    assert "\x1b" not in str(line)


@pytest.mark.parametrize(
    "error",
    [
        SparkConnectException(errorClass="NO_ACTIVE_SESSION", messageParameters={}),
        SparkConnectGrpcException("[INVALID_HANDLE.SESSION_CHANGED] …", errorClass="INVALID_HANDLE.SESSION_CHANGED"),
        SparkConnectGrpcException("failed to connect", grpc_status_code=StatusCode.UNAVAILABLE),
        PySparkException("Job 4 cancelled because SparkContext was shut down"),
    ],
)
def test_whoever_was_using_a_spark_server_that_has_gone_blames_nothing_else(error: Exception) -> None:
    try:
        try:
            raise error
        except PySparkException as cause:
            raise ClickmillError("the files of web cannot be read") from cause
    except ClickmillError as blamed:
        line = in_one_line(blamed)
    assert isinstance(line, SparkGoneError)
    assert "files" not in str(line)


def test_other_errors_stay_what_they_are() -> None:
    usage = UsageError("no such source: No space left on device")
    assert in_one_line(usage) is usage
    for fault in (ValueError("No space left on device"), AnalysisException("no column UNAVAILABLE"), OSError(2, "no")):
        assert in_one_line(fault) is None

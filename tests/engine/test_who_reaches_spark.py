"""Spark Connect asks for its token; Spark's UI, which asks for nothing, ends nothing."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import grpc
import pyspark
import pytest
from pyspark.sql.connect.proto import base_pb2, base_pb2_grpc

from spark_jobs.engine.spark_status import SparkStatus
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

WAIT = 60.0


def test_spark_connect_lets_nobody_in_without_its_token(spark_remote: str) -> None:
    address, _, token = spark_remote.removeprefix("sc://").partition("/;token=")
    asked = base_pb2.AnalyzePlanRequest(
        session_id=str(uuid4()), spark_version=base_pb2.AnalyzePlanRequest.SparkVersion()
    )
    answers = {}
    with grpc.insecure_channel(address) as channel:
        server = base_pb2_grpc.SparkConnectServiceStub(channel)
        for name, metadata in {
            "its own": [("authorization", f"Bearer {token}")],
            "another": [("authorization", "Bearer made-up")],
            "none": [],
        }.items():
            try:
                answers[name] = server.AnalyzePlan(asked, metadata=metadata, timeout=WAIT).spark_version.version
            except grpc.RpcError as error:
                answers[name] = error.code().name
    assert answers == {"its own": pyspark.__version__, "another": "UNAUTHENTICATED", "none": "UNAUTHENTICATED"}


def test_a_page_that_asks_sparks_ui_to_kill_a_job_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    asked_to_end = tmp_path / "end"

    def when_asked(batches: Iterator[Any]) -> Iterator[Any]:
        while not asked_to_end.exists():
            time.sleep(0.05)
        yield from batches

    rows: list[int] = []
    query = spark.range(10, numPartitions=1).mapInArrow(when_asked, "id LONG")
    asking = threading.Thread(target=lambda: rows.extend(row["id"] for row in query.collect()))
    status = SparkStatus.of(spark)
    assert status is not None
    before = {job["jobId"] for job in status._get("jobs")}
    asking.start()
    try:
        job = newest_job(status, before)
        for path in (
            f"jobs/job/kill/?id={job['jobId']}",
            *(f"stages/stage/kill/?id={stage}&terminate=true" for stage in job["stageIds"]),
        ):
            for method in ("GET", "POST"):
                with suppress(urllib.error.HTTPError):
                    urllib.request.urlopen(urllib.request.Request(f"{status.address}/{path}", method=method)).close()
        time.sleep(1)  # Spark cancels a job within milliseconds
    finally:
        asked_to_end.touch()
        asking.join(WAIT)
    assert rows == list(range(10))


def newest_job(status: SparkStatus, before: set[int]) -> dict[str, Any]:
    """The first running job that was not there before."""

    def new() -> list[dict[str, Any]]:
        running = status._get("jobs", status="running")
        return [job for job in running if job["jobId"] not in before and job["numActiveTasks"]]

    return wait_until(new, "a job has begun", WAIT)[0]

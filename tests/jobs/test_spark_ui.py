"""Spark's UI, which asks for no password, shows; it ends nothing."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_jobs.spark_status import SparkStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

WAIT = 60.0


def test_a_page_that_asks_sparks_ui_to_kill_a_job_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    told_to_end = tmp_path / "end"

    def when_told(batches: Iterator[Any]) -> Iterator[Any]:
        while not told_to_end.exists():
            time.sleep(0.05)
        yield from batches

    rows: list[int] = []
    query = spark.range(10, numPartitions=1).mapInArrow(when_told, "id LONG")
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
        told_to_end.touch()
        asking.join(WAIT)
    assert rows == list(range(10))


def newest_job(status: SparkStatus, before: set[int]) -> dict[str, Any]:
    """The first running job that was not there before."""
    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline:
        for job in status._get("jobs", status="running"):
            if job["jobId"] not in before and job["numActiveTasks"]:
                return dict(job)
        time.sleep(0.1)
    raise AssertionError("no job has begun")

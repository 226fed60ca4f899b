"""When Spark's jobs ran, from its status REST API."""

from __future__ import annotations

from datetime import UTC, datetime

from spark_jobs.engine.spark_status import SparkStatus


def job_times(status: SparkStatus, step: str) -> list[tuple[datetime, datetime]]:
    """Beginning and end of each Spark job that ran under this step and has ended, Delta's own included."""
    status.catch_up()
    jobs = [job for job in status._jobs(step) if "completionTime" in job]
    return [(_moment(job["submissionTime"]), _moment(job["completionTime"])) for job in jobs]


def _moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fGMT").replace(tzinfo=UTC)

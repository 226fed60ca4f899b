"""The pipeline's own jobs, whose topology can be explained, by the names of their commands."""

from __future__ import annotations

from spark_jobs.grouping.load import aggregate_measured
from spark_jobs.ingest.job import ingest
from spark_jobs.publish.job import publish
from spark_jobs.quality.job import require_valid
from spark_jobs.topology.job import Job

JOBS: dict[str, Job] = {
    "ingest": ingest,
    "aggregate": aggregate_measured,
    "validate": require_valid,
    "publish": publish,
}

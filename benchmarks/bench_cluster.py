"""Measure one and two workers, of a core each, on the same work: ingest and count, data in S3.

Two clusters are up, and work in turn, several rounds; the ratio of medians is what to quote. All is on this machine,
the S3 server and the Spark servers too, so two workers gain less here than on machines of their own.
Sizes: ``BENCH_CLICKS`` (500,000), ``BENCH_ROUNDS`` (5).
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from benchmarks.bench import START, make_landing
from benchmarks.timing import console, seconds
from include.hours import HourRange
from include.job_arguments import JobArguments
from include.settings import Settings
from include.storage import place
from ops.home import Home, load_secrets
from tests.support.postgres_server import PostgresServer, postgres_server
from tests.support.s3_server import S3Server, s3_server
from tests.support.spark_cluster import spark_cluster
from tests.support.spark_server import SparkServer, open_session, started

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOURS = 4


@dataclass
class Workers:
    """A cluster, its Spark server and lake, and what it took each round."""

    server: SparkServer
    spark: SparkSession
    settings: Settings
    took: dict[str, list[float]] = field(default_factory=dict)
    shuffled: dict[str, int] = field(default_factory=dict)

    def run(self, *, is_counted: bool) -> None:
        """Ingest and aggregate once."""
        from spark_jobs.aggregate.job import aggregate
        from spark_jobs.ingest.job import ingest

        arguments = JobArguments("web", HourRange(START, START.plus(HOURS)))
        for job in (ingest, aggregate):
            name, before = f"{job.__name__}_clicks", self._shuffled()
            took = seconds(lambda: job(self.spark, self.settings, arguments))  # noqa: B023 - called at once
            if is_counted:
                self.took.setdefault(name, []).append(took)
                self.shuffled[name] = self._shuffled() - before

    def _shuffled(self) -> int:
        address = f"http://127.0.0.1:{self.server.ports.spark_ui}/api/v1/applications"
        (application,) = httpx.get(address).json()
        stages: list[dict[str, Any]] = httpx.get(f"{address}/{application['id']}/stages", timeout=60).json()
        return sum(stage["shuffleWriteBytes"] for stage in stages)


@contextmanager
def workers(number: int, folder: Path, s3: S3Server, postgres: PostgresServer) -> Iterator[Workers]:
    """So many workers, up until the end."""
    name = f"workers{number}"
    with (
        spark_cluster(number, s3.variables) as cluster,
        pytest.MonkeyPatch.context() as environment,
        ExitStack() as stack,
    ):
        environment.setenv("CLICKMILL_SPARK_MASTER", cluster.master)
        home = Home(folder / name, place(s3.make_bucket(name)) / "clickmill", postgres.make_database(name))
        server = SparkServer.of(home)
        load_secrets(home)
        stack.enter_context(started(server))
        settings = replace(
            Settings.from_environment({}), home=home.path, data_folder=home.data, locks_database=home.locks_database
        )
        yield Workers(server, stack.enter_context(open_session(server.remote)), settings)


def main() -> None:
    """Measure, and print a line for each job."""
    clicks, rounds = int(os.environ.get("BENCH_CLICKS", "500000")), int(os.environ.get("BENCH_ROUNDS", "5"))
    with (
        tempfile.TemporaryDirectory(prefix="cm-bench-", ignore_cleanup_errors=True) as folder,
        s3_server() as s3,
        postgres_server() as postgres,
        pytest.MonkeyPatch.context() as environment,
        ExitStack() as stack,
    ):
        for name, value in s3.variables.items():
            environment.setenv(name, value)
        single, double = (stack.enter_context(workers(number, Path(folder), s3, postgres)) for number in (1, 2))
        (lines,) = {make_landing(cluster.settings.landing, HOURS, clicks) for cluster in (single, double)}
        for turn in range(rounds + 1):  # the first turn warms both up
            for cluster in (single, double):
                cluster.run(is_counted=turn > 0)
        console.print(f"{lines:,} clicks, {HOURS} log hours, data in S3, {rounds} rounds in turn:")
        for job in single.took:
            took = [cluster.took[job] for cluster in (single, double)]
            medians = [statistics.median(all_) for all_ in took]
            ranges = [f"{statistics.median(all_):.1f} s ({min(all_):.1f} to {max(all_):.1f})" for all_ in took]
            console.print(
                f"  {job}: one worker {ranges[0]}, two {ranges[1]}, two / one {medians[1] / medians[0]:.2f}; "
                f"shuffles of two write {double.shuffled[job] / 1e6:.1f} MB"
            )


if __name__ == "__main__":
    main()

"""Measure one and two workers, of a core each, on the same work: all four jobs of four log hours, data in S3.

Two clusters are up, and work in turn, several rounds after one that warms them up; the ratio of medians is what to
quote. All is on this machine, the S3 server and the Spark servers too, so two workers gain less here than on machines
of their own.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import psutil
import pytest
from rich.table import Table

from benchmarks.bench import START
from benchmarks.job_runs import JobRun, run_job
from benchmarks.made_clicks import SOURCE, URLS, land_hours
from benchmarks.timing import console
from include.command import described_parser, exit_with
from include.storage import place
from ops.home import Home
from tests.support.postgres_server import PostgresServer, postgres_server
from tests.support.s3_server import S3Server, s3_server
from tests.support.spark_cluster import SparkCluster, spark_cluster
from tests.support.spark_server import SparkServer, started
from tests.support.temporary_lake import JOBS

HOURS = 4


@dataclass
class Workers:
    """A cluster, its Spark server and lake, and what each job took, a run a round."""

    cluster: SparkCluster
    server: SparkServer
    runs: dict[str, list[JobRun]] = field(default_factory=lambda: defaultdict(list))
    #: Bytes that shuffles wrote, in the last round.
    shuffled: dict[str, int] = field(default_factory=dict)

    def land(self, clicks: int, urls: str) -> None:
        """Land so many clicks."""
        with tempfile.TemporaryDirectory(prefix="cm-bench-") as folder:
            land_hours(Path(folder), START, [clicks // HOURS // 100 * 100] * HOURS, urls)
            # A folder's _SUCCESS is the last of its names.
            for file in sorted(file for file in Path(folder).rglob("*") if file.is_file()):
                (self.server.home.landing / file.relative_to(folder)).write_bytes(file.read_bytes())

    def run(self) -> None:
        """Run all jobs once."""
        span = ["--source", SOURCE, "--from", str(START), "--to", str(START.plus(HOURS))]
        home, workers = self.server.home, [psutil.Process(worker.pid) for worker in self.cluster.workers]
        variables = {"CLICKMILL_DATA": str(home.data_folder), "CLICKMILL_LOCKS": str(home.locks_database)}
        for job in JOBS:
            before = self._shuffled()
            run = run_job([job, *span], home.path, self.server.remote, workers, **variables)
            assert run.exit_code == 0, f"{job}: exit code {run.exit_code}"
            self.runs[job].append(run)
            self.shuffled[job] = self._shuffled() - before

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
        yield Workers(cluster, stack.enter_context(started(SparkServer.of(home))))


def main() -> None:
    """Measure, and print a row for each job."""
    parser = described_parser("benchmarks.bench_cluster", __doc__)
    parser.add_argument("--clicks", type=int, default=500_000, help="of the log hours together (default 500000)")
    parser.add_argument("--rounds", type=int, default=3, help="that count (default 3)")
    parser.add_argument("--urls", choices=URLS, default="pages", help="which there are (default pages)")
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="cm-bench-", ignore_cleanup_errors=True) as folder,
        s3_server() as s3,
        postgres_server() as postgres,
        pytest.MonkeyPatch.context() as environment,
        ExitStack() as stack,
    ):
        for name, value in s3.variables.items():
            environment.setenv(name, value)
        both = [stack.enter_context(workers(number, Path(folder), s3, postgres)) for number in (1, 2)]
        for cluster in both:
            cluster.land(arguments.clicks, arguments.urls)
        for _ in range(arguments.rounds + 1):
            for cluster in both:
                cluster.run()
    title = f"{arguments.clicks:,} clicks, {arguments.urls}, {HOURS} log hours, data in S3: one worker, and two"
    table = Table(title=title, box=None)
    headings = "job", "s", "s of two", "ratio", "CPU s", "of two", "shuffled MB", "largest process MiB", "job MiB"
    for heading in headings:
        table.add_column(heading, justify="right")
    for job in JOBS:
        # The first warms up.
        one_worker, two_workers = (cluster.runs[job][1:] for cluster in both)
        took = [median(run.seconds for run in runs) for runs in (one_worker, two_workers)]
        processor = [
            median(run.own_processor + run.spark_processor for run in runs) for runs in (one_worker, two_workers)
        ]
        table.add_row(
            job, *(f"{seconds:.1f}" for seconds in took), f"{took[1] / took[0]:.2f}",
            *(f"{seconds:.1f}" for seconds in processor), f"{both[1].shuffled[job] / 1e6:,.1f}",
            f"{max(run.largest_mebibytes for run in two_workers):,.0f}",
            f"{max(run.own_mebibytes for run in two_workers):,.0f}",
        )  # fmt: skip
    console.print(table)


if __name__ == "__main__":
    exit_with(main)

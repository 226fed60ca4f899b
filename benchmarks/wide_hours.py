"""Measure log hours of few URLs, and of one for each click: each job's seconds and memory, and the server's.

Each job is a process of its own, as in a shell; the Spark server is new for each size and kind of URLs. Processor time
is also said for a million clicks, and compared with that of the first kind of URLs of the same size.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.table import Table

from benchmarks.bench import START
from benchmarks.job_runs import JobRun, run_job
from benchmarks.made_clicks import SOURCE, URLS, land_hours
from benchmarks.timing import console
from include.command import described_parser, exit_with
from tests.support.spark_server import SparkServer, started
from tests.support.temporary_lake import JOBS


def run_jobs(clicks: int, hours: int, urls: str, jobs: Sequence[str]) -> dict[str, JobRun]:
    """Land so many clicks over these hours, and run the jobs on them."""
    with TemporaryDirectory(prefix="cm-wide-", ignore_cleanup_errors=True) as folder:
        with started(SparkServer.in_folder(Path(folder))) as server:
            land_hours(server.home.path / "landing", START, [clicks // hours // 100 * 100] * hours, urls)
            span = ["--source", SOURCE, "--from", str(START), "--to", str(START.plus(hours))]
            return {job: run_job([job, *span], server.home.path, server.remote) for job in jobs}


def main() -> None:
    """Measure and print the table."""
    parser = described_parser("benchmarks.wide_hours", __doc__)
    parser.add_argument("--clicks", type=int, nargs="+", default=[2_000_000], help="in all (default 2000000)")
    parser.add_argument("--hours", type=int, default=1, help="over so many log hours (default 1)")
    parser.add_argument("--urls", nargs="+", choices=URLS, default=["pages", "distinct"], help="which there are")
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=JOBS, help="what to run (default all)")
    arguments = parser.parse_args()
    table = Table(title=f"{arguments.hours} log hours: processor seconds a million clicks, memory", box=None)
    for heading in ("clicks", "URLs", "job", "s", "CPU s/M", "ratio", "job MiB", "Spark MiB", ""):
        table.add_column(heading, justify="right" if heading else "left")
    for clicks in arguments.clicks:
        first: dict[str, float] = {}
        for urls in arguments.urls:
            for job, run in run_jobs(clicks, arguments.hours, urls, arguments.jobs).items():
                processor = (run.own_processor + run.spark_processor) / clicks * 1e6
                table.add_row(
                    f"{clicks:,}", urls, job, f"{run.seconds:,.1f}", f"{processor:,.2f}",
                    f"{processor / first.setdefault(job, processor):.2f}", f"{run.own_mebibytes:,.0f}",
                    f"{run.spark_mebibytes:,.0f}", f"exit code {run.exit_code}" if run.exit_code else "",
                )  # fmt: skip
            console.print(table)


if __name__ == "__main__":
    exit_with(main)

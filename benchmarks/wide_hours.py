"""Measure one log hour whose clicks all have a URL of their own: each job's seconds and memory, and the server's.

Each job is a process of its own, as in a shell; the Spark server is new for each number of URLs. ``BENCH_URLS`` are the
numbers of URLs (1000000,2000000,6000000), ``BENCH_JOBS`` the jobs (ingest,aggregate,validate,publish).
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from rich.table import Table

from benchmarks.bench import START
from benchmarks.job_runs import run_job
from benchmarks.timing import console
from include.landing import SUCCESS, hour_folder
from tests.support.spark_server import SparkServer, started

_LINES_OF_A_FILE = 250_000
_COUNTRIES = ("DE", "US", "FR", "BR", "IN")


def land_distinct_urls(landing: Path, urls: int) -> None:
    """Land so many clicks of one log hour, by a tenth as many visitors, each of a URL of its own."""
    folder = hour_folder(landing, "web", START)
    folder.mkdir(parents=True)
    for first in range(0, urls, _LINES_OF_A_FILE):
        with (folder / f"{first}.json").open("w", encoding="utf-8") as file:
            file.writelines(map(_line, range(first, min(first + _LINES_OF_A_FILE, urls))))
    (folder / SUCCESS).touch()


def _line(n: int) -> str:
    clicked_at = f"{START}:{n % 60:02d}:{n // 60 % 60:02d}Z"
    # Neighbours have nothing in common.
    url = f"https://shop.example/catalogue/p?session={n * 2_654_435_761 % (1 << 32):08x}{n:08x}"
    country = _COUNTRIES[n % len(_COUNTRIES)]
    return (
        f'{{"event_id":"e{n}","ts":"{clicked_at}","visitor_id":"v{n // 10}","url":"{url}",'
        f'"geo":{{"country":"{country}"}}}}\n'
    )


def one_hour(urls: int, jobs: list[str], table: Table) -> None:
    """Run the jobs on an hour of so many distinct URLs; a row of the table for each."""
    with tempfile.TemporaryDirectory(prefix="cm-wide-", ignore_cleanup_errors=True) as folder:
        with started(SparkServer.in_folder(Path(folder))) as server:
            land_distinct_urls(server.home.path / "landing", urls)
            for name in jobs:
                run = run_job([name, "--source", "web", "--hour", str(START)], server.home.path, server.remote)
                values = [f"{value:,.1f}" for value in (run.seconds, run.own_processor, run.spark_processor)]
                values += [f"{value:,.0f}" for value in (run.own_mebibytes, run.spark_mebibytes)]
                table.add_row(f"{urls:,}", name, *values, f"exit code {run.exit_code}" if run.exit_code else "")


def main() -> None:
    """Measure and print the table."""
    sizes = [int(size) for size in os.environ.get("BENCH_URLS", "1000000,2000000,6000000").split(",")]
    jobs = os.environ.get("BENCH_JOBS", "ingest,aggregate,validate,publish").split(",")
    table = Table(title="one log hour, each click a URL of its own")
    for heading in ("URLs", "job", "s", "job's CPU s", "Spark's CPU s", "job MiB", "Spark MiB", ""):
        table.add_column(heading, justify="right" if heading else "left")
    for urls in sizes:
        one_hour(urls, jobs, table)
        console.print(table)


if __name__ == "__main__":
    main()

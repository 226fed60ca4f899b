"""The newest figure of each work that is measured, and the table of them in ``docs/benchmarks.md``.

The benchmarks record their figures in ``docs/benchmarks.json``. What is timed by hand is recorded by
``python -m benchmarks.figures NAME VALUE [VALUE ...]``; without arguments, only the table is written again.
Who measures other sizes than ``WORKS`` says, by ``BENCH_CLICKS`` or ``BENCH_SECONDS``, records nothing.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from dataclasses import dataclass
from typing import Any

import psutil

from include.command import described_parser, exit_with
from include.settings import REPOSITORY
from include.table_docs import fill_blocks, markdown_table

PAGE = REPOSITORY / "docs/benchmarks.md"
FIGURES = REPOSITORY / "docs/benchmarks.json"


@dataclass(frozen=True)
class Work:
    """What is measured: its unit, and the most that it should take (where `at_least`, the least that it should do)."""

    description: str
    unit: str
    aim: float
    at_least: bool = False


WORKS = {
    "duckdb": Work("ingest and count 2 million clicks, compared with the same work in DuckDB", "times", 2.5),
    "processor": Work("the same, processor time a million clicks, Python workers included", "s", 17),
    "memory": Work("the same, largest memory of the server and its workers", "MiB", 2_476),
    "memory_of_day": Work("memory of 24 log hours in one range, compared with 4", "times", 1.1),
    "validate": Work("validate 2 million clicks in 4 log hours", "s", 5),
    "hour": Work("an hour of 10,000 clicks through the DAG, run start to run end", "s", 20),
    "small_hour": Work("an hour of 10 clicks, the same", "s", 8),
    "empty_hour": Work("what an empty log hour adds to a range", "s", 0.1),
    "month": Work("a month from landed to published: 720 hours, 7.2 million clicks", "s", 300),
    "advice": Work("`clickmill advise` over that month", "s", 60),
    "year": Work("a year from landed to published: 8,760 hours of 100 clicks", "s", 1_200),
    "hour_after_year": Work("an hour of 100 clicks after that year, compared with one before it", "times", 1.2),
    "hour_maintained": Work("the same after `maintain_lake` has removed all but 60 days", "times", 1.2),
    "page_of_year": Work("the overview of data quality over that year", "ms", 1_000),
    "page": Work("the overview of data quality, 3 days of 10,000 validated partitions", "ms", 1_000),
    "page_in_s3": Work("the same, data in S3", "ms", 1_000),
    "many_clicks": Work("500 million clicks in 30 days of hours, from making them to published", "s", 4_500),
    "many_clicks_fall": Work("clicks a second of its first days, compared with its last", "times", 1.1),
    "database": Work("a million published rows to PostgreSQL, in one hour", "s", 15),
    "formats": Work("parse lines of the slowest format, two processes", "lines/s", 250_000, at_least=True),
    "own_log": Work("`make run LOGS=` of a real log, 84 hours, the services being up", "s", 60),
    "stream": Work("Kafka to `clicks`, 4 partitions, a backlog", "clicks/s", 60_000, at_least=True),
    "stream_live": Work("the same with both live counts", "clicks/s", 45_000, at_least=True),
    "stream_processor": Work("Kafka to `clicks`, processor time a million clicks, workers included", "s", 25),
    "stream_wait": Work("from producing a click to reading it, half of that load, median", "s", 2),
    "run": Work("`make run` in a fresh clone, packages at hand", "s", 210),
    "unit": Work("`make unit`", "s", 60),
    "test": Work("`make test`, packages at hand", "s", 600),
    "test_all": Work("`make test-all`, packages at hand", "s", 1_680),
}


def record(name: str, *values: float) -> None:
    """Keep these values (one a round) as the newest figure of a work, and write the table again.

    Raises:
        KeyError: if no work has that name.
    """
    if name not in WORKS:
        raise KeyError(f"{name!r} is no work that is measured; expected one of {', '.join(WORKS)}")
    if {"BENCH_CLICKS", "BENCH_SECONDS"} & os.environ.keys():
        return
    figures = json.loads(FIGURES.read_text(encoding="utf-8")) | {
        name: {
            "values": [float(f"{value:.4g}") for value in values],
            "machine": f"{psutil.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB",
            "commit": _commit(),
        }
    }
    FIGURES.write_text(json.dumps({name: figures[name] for name in WORKS if name in figures}, indent=1) + "\n", "utf-8")
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """What ``docs/benchmarks.md`` should be."""
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    rows = [_row(work, figures[name]) for name, work in WORKS.items() if name in figures]
    heading = ["work", "aim", "result", "of the aim", "machine", "commit"]
    return fill_blocks(PAGE.read_text(encoding="utf-8"), {"figures": markdown_table(heading, rows)})


def _row(work: Work, figure: dict[str, Any]) -> list[str]:
    values = figure["values"]
    median = statistics.median(values)
    result = _shown(median, work.unit)
    if len(values) > 1:
        result += f" ({_shown(min(values), '')} to {_shown(max(values), '')}, {len(values)} rounds)"
    share = work.aim / median if work.at_least else median / work.aim
    missed = "**" if share > 1 else ""
    return [
        work.description,
        f"{'at least ' if work.at_least else ''}{_shown(work.aim, work.unit)}",
        result,
        f"{missed}{share:.2f}{missed}",
        figure["machine"],
        f"`{figure['commit']}`",
    ]


def _shown(value: float, unit: str) -> str:
    return (f"{value:,.0f}" if value >= 100 else f"{value:.3g}") + f" {unit}".rstrip()


def _commit() -> str:
    """With a "+" if anything but the figures themselves has been changed since."""
    changed = _git("status", "--porcelain", "--", ".", ":!docs/benchmarks.*")
    return _git("rev-parse", "--short", "HEAD") + ("+" if changed else "")


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=REPOSITORY, check=True, capture_output=True, text=True
    ).stdout.strip()


def main() -> None:
    """Record what is given, or write the table again."""
    parser = described_parser("benchmarks.figures", __doc__)
    parser.add_argument("name", nargs="?", choices=WORKS)
    parser.add_argument("values", nargs="*", type=float)
    arguments = parser.parse_args()
    if arguments.name and not arguments.values:
        parser.error(f"no value for {arguments.name}")
    if arguments.name:
        record(arguments.name, *arguments.values)
    else:
        PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    exit_with(main)

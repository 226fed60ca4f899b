"""Make, land, ingest, count, validate and publish very many clicks: a month of hours, one day after the other.

Each job is a process of its own, as in a shell, on one Spark server. When a day is published, its clicks of each click
hour are compared with those that were made, and retention removes what was landed. ``--folder`` keeps the lake and what
was measured: started again with the same sizes, it goes on with the day after the last one that was published. Prints a
row for each day, and draws clicks a second, memory and disk over the clicks.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import duckdb
from deltalake import DeltaTable
from rich.table import Table

from benchmarks import picture
from benchmarks.figures import record
from benchmarks.job_runs import run_job
from benchmarks.made_clicks import SOURCE, MadeHour, land_hours
from benchmarks.picture import Chart, first, second
from benchmarks.timing import console, seconds
from include.command import described_parser, exit_with
from include.hours import Hour
from include.settings import REPOSITORY, Settings
from include.tables import PUBLISHED_CLICKS_BY_URL_HOURLY
from ops.home import Home
from spark_jobs.retention import job as retention_job
from tests.support.spark_server import SparkServer, started
from tests.support.temporary_lake import JOBS

PICTURE = REPOSITORY / "docs" / "images" / "many_clicks.svg"
START = Hour.parse("2026-03-01T00")
HOURS = 24
#: The size whose figures are kept.
CLICKS, DAYS = 500_000_000, 30
#: Share of a day's clicks by hour, as visitors are asleep and awake.
_CURVE = [2, 1, 1, 1, 1, 2, 3, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 6, 7, 8, 8, 6, 5, 3]


@dataclass(frozen=True)
class Day:
    """One day, published: its lines, seconds by step, largest memories in MiB, and bytes on disk after it."""

    day: str
    lines: int
    seconds: dict[str, float]
    job_mebibytes: float
    spark_mebibytes: float
    disk_bytes: int

    @property
    def clicks_per_second(self) -> float:
        """Lines a second, from making them to removing them."""
        return self.lines / sum(self.seconds.values())


class Month:
    """A lake that is filled day by day, and what was measured of each, in a folder."""

    def __init__(self, folder: Path, lines_of_day: int, server: SparkServer) -> None:
        self._lines, self._server = lines_of_day, server
        self._measured = folder / "days.jsonl"
        self._pipeline = folder / "pipeline.toml"
        settings = Settings.from_environment({"CLICKMILL_HOME": str(server.home.path)})
        general = settings.pipeline_file.read_text(encoding="utf-8")
        self._pipeline.write_text(general.replace("[retention]\n", "[retention]\nlanding_days = 1\n"))
        self._settings = replace(settings, pipeline_file=self._pipeline)

    def days(self) -> list[Day]:
        """Those that are published."""
        if not self._measured.exists():
            return []
        return [Day(**json.loads(line)) for line in self._measured.read_text().splitlines()]

    def add(self, number: int) -> Day:
        """Do all of a day.

        Raises:
            AssertionError: if a job fails, or other clicks are published than were made.
        """
        start, made = START.plus(HOURS * number), list[MadeHour]()
        took = {"make": seconds(lambda: made.extend(self._land(start, number)))}
        runs = []
        for job in JOBS:
            arguments = [job, "--source", SOURCE, "--from", str(start), "--to", str(start.plus(HOURS))]
            pipeline = {"CLICKMILL_PIPELINE": str(self._pipeline)}
            runs.append(run := run_job(arguments, self._server.home.path, self._server.remote, **pipeline))
            assert run.exit_code == 0, f"{' '.join(arguments)}: exit code {run.exit_code}"
            took[job] = run.seconds
        wanted = sum((hour.clicks for hour in made), Counter[str]())
        assert (published := self._published(start)) == wanted, f"published {published}, made {wanted}"
        took["remove"] = seconds(lambda: retention_job.maintain(self._settings, dry_run=False, kept=timedelta(0)))
        day = Day(
            str(start.day),
            sum(hour.lines for hour in made),
            took,
            max(run.own_mebibytes for run in runs),
            max(run.spark_mebibytes for run in runs),
            sum(file.stat().st_size for file in self._server.home.path.rglob("*") if file.is_file()),
        )
        with self._measured.open("a") as measured:
            measured.write(json.dumps(asdict(day)) + "\n")
        return day

    def _land(self, start: Hour, number: int) -> list[MadeHour]:
        # In hundreds: what is sent twice is of one hour.
        sizes = [self._lines * share // sum(_CURVE) // 100 * 100 for share in _CURVE]
        return land_hours(self._server.home.path / "landing", start, sizes, first=number * sum(sizes))

    def _published(self, start: Hour) -> Counter[str]:
        """Clicks by click hour of a day, as another reader finds them."""
        table = DeltaTable(str(self._settings.lake / PUBLISHED_CLICKS_BY_URL_HOURLY.name))
        published = table.to_pyarrow_dataset(partitions=[("click_date", "=", str(start.day))])
        rows = duckdb.sql("SELECT click_hour, sum(click_count)::BIGINT FROM published GROUP BY ALL").fetchall()
        return Counter({str(Hour.of(start.day, hour)): clicks for hour, clicks in rows if published})


def draw(days: Sequence[Day]) -> str:
    """The SVG: over the million clicks so far."""
    done = [sum(day.lines for day in days[: number + 1]) / 1e6 for number in range(len(days))]

    def line(value: Callable[[Day], float]) -> list[tuple[float, float]]:
        return [(so_far, value(day)) for so_far, day in zip(done, days, strict=True)]

    charts = (
        Chart(
            "thousand clicks a second, from making them to published", [line(lambda day: day.clicks_per_second / 1e3)]
        ),
        Chart(
            f"largest memory of {first('Spark and its workers')} and of {second('a job')}, GiB",
            [line(lambda day: day.spark_mebibytes / 1024), line(lambda day: day.job_mebibytes / 1024)],
        ),
        Chart("on the disk, GB", [line(lambda day: day.disk_bytes / 1e9)]),
    )
    return picture.draw(charts, "Clicks a second, memory and disk over the clicks of a month", "million clicks")


def as_table(days: Sequence[Day]) -> Table:
    """A row for each day."""
    table = Table(title="day by day: million clicks, seconds by step, thousand clicks a second, memory, disk", box=None)
    for heading in ("day", "M", *days[0].seconds, "k/s", "job MiB", "Spark MiB", "GB"):
        table.add_column(heading, justify="right")
    for day in days:
        table.add_row(
            day.day[5:], f"{day.lines / 1e6:.2f}", *(f"{step:.1f}" for step in day.seconds.values()),
            f"{day.clicks_per_second / 1e3:,.1f}", f"{day.job_mebibytes:,.0f}", f"{day.spark_mebibytes:,.0f}",
            f"{day.disk_bytes / 1e9:.1f}",
        )  # fmt: skip
    return table


def main() -> None:
    """Fill the month, or what is left of it."""
    parser = described_parser("benchmarks.many_clicks", __doc__)
    parser.add_argument("--clicks", type=int, default=CLICKS // 10, help=f"in all (default {CLICKS // 10})")
    parser.add_argument("--days", type=int, default=DAYS, help=f"of how many days (default {DAYS})")
    parser.add_argument("--folder", type=Path, help="where the lake is, and what was measured (default a new one)")
    parser.add_argument("--picture", type=Path, help="where to draw it (default nowhere)")
    arguments = parser.parse_args()
    kept = nullcontext(arguments.folder) if arguments.folder else TemporaryDirectory(prefix="cm-many-")
    with kept as folder, started(SparkServer.of(Home((Path(folder) / "home").resolve()))) as server:
        month = Month(Path(folder), arguments.clicks // arguments.days, server)
        for number in range(len(month.days()), arguments.days):
            month.add(number)
            console.print(as_table(month.days()[-1:]))
        days = month.days()
    console.print(as_table(days))
    took, lines = sum(sum(day.seconds.values()) for day in days), sum(day.lines for day in days)
    # The first days warm up.
    fall = median(day.clicks_per_second for day in days[1:4]) / median(day.clicks_per_second for day in days[-3:])
    console.print(
        f"{lines:,} clicks in {took:,.0f} s: {lines / took:,.0f} a second; the first days are {fall:.2f} times as fast"
    )
    if arguments.picture:
        arguments.picture.write_text(draw(days), encoding="utf-8")
    if (arguments.clicks, arguments.days) == (CLICKS, DAYS):
        record("many_clicks", took)
        record("many_clicks_fall", fall)


if __name__ == "__main__":
    exit_with(main)

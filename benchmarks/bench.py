"""Measure Clickmill on this machine: against DuckDB, an hour and a month through the DAG, memory, pages.

Everything that is compared runs in one go, in turn, several rounds; medians and ratios are what to quote.
Sizes: ``BENCH_CLICKS`` (2,000,000), ``BENCH_ROUNDS`` (5); ``BENCH_ONLY`` names parts: duckdb, memory, dag, quality,
measuring, pages, pages_in_s3, database, month, reallog, empty, and if it is named year. reallog needs ``BENCH_LOG``, an
access log of yours.
"""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
from rich.table import Table

from benchmarks import duckdb_pipeline
from benchmarks.figures import record
from benchmarks.quality_pages import pages, pages_in_s3, pages_of_a_year
from benchmarks.ranges import advice, empty_hours, maintain_year, one_range, own_log
from benchmarks.spark_watch import SparkWatch
from benchmarks.timing import console, seconds
from include.hours import Hour, HourRange
from include.job_arguments import JobArguments
from include.settings import Settings
from include.storage import remove_folder
from include.tables import PUBLISHED_CLICKS_BY_URL_HOURLY
from ops.airflow_api import CLICKS_HOURLY, AirflowApi
from ops.backfill import run_hours
from ops.services.running import Services
from ops.services.start import start
from ops.services.stop import stop
from samples.sample_logs import make_sample
from samples.sample_spec import SampleSpec
from spark_jobs.publish.database import copy_to_database
from tests.end_to_end.silent_display import Silent

START = Hour.parse("2026-03-01T10")
PARTS = "duckdb,dag,quality,measuring,memory,pages,pages_in_s3,database,month"


def make_landing(folder: Path, hours: int, clicks: int, start: Hour = START) -> int:
    """Sample logs, gzip, one file of each log hour per core; returns their lines."""
    spec = SampleSpec(start=start, hours=hours, clicks_per_hour=1000, compression="gzip", files_per_hour=2)
    # The mean over a day is what one asks for; these hours are busier.
    probe = make_sample(spec, folder / "probe")
    lines = sum(hour.lines for hour in probe.log_hours.values())
    remove_folder(folder / "probe")
    truth = make_sample(replace(spec, clicks_per_hour=round(1000 * clicks / lines)), folder)
    return sum(hour.lines for hour in truth.log_hours.values())


def against_duckdb(home: Path, services: Services, clicks: int, rounds: int) -> None:
    """Ingest and aggregate, side by side with DuckDB."""
    from pyspark.sql import SparkSession

    from spark_jobs.engine.session import configure
    from spark_jobs.grouping.load import aggregate_measured
    from spark_jobs.ingest import job as ingest_job

    settings = replace(Settings.from_environment({}), home=home / "bench")
    lines = make_landing(settings.landing, 4, clicks)
    arguments = JobArguments("web", HourRange(START, START.plus(4)))
    spark = configure(SparkSession.builder.remote(services.spark_remote).getOrCreate())
    times: dict[str, list[float]] = {}
    processor: dict[str, list[float]] = {}
    watch = SparkWatch(services.home)

    def measure(name: str, work: Callable[[], object], counted: bool) -> None:
        before = watch.processor_seconds()
        took = seconds(work)
        if counted:
            times.setdefault(name, []).append(took)
            processor.setdefault(name, []).append(watch.processor_seconds() - before)

    for turn in range(rounds + 1):  # the first turn warms both up
        shutil.rmtree(settings.lake, ignore_errors=True)
        measure("Clickmill: ingest", lambda: ingest_job.ingest(spark, settings, arguments), turn > 0)
        measure("Clickmill: aggregate", lambda: aggregate_measured(spark, settings, arguments), turn > 0)
        for name, same_work in (("DuckDB, the same work", True), ("DuckDB, the least", False)):
            measure(
                name, partial(duckdb_pipeline.run, settings.landing, home / "duckdb", same_work=same_work), turn > 0
            )
    for measured in (times, processor):
        both = zip(measured["Clickmill: ingest"], measured["Clickmill: aggregate"], strict=True)
        measured["Clickmill"] = [sum(one_round) for one_round in both]
    table = Table(title=f"{lines:,} JSON clicks, gzip, 4 log hours: seconds, {rounds} rounds in turn")
    for heading in ("", "median", "smallest", "largest", "Clickmill / it"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, took in sorted(times.items()):
        ratios = [a / b for a, b in zip(times["Clickmill"], took, strict=True)]
        if name == "DuckDB, the same work":
            record("duckdb", *ratios)
        table.add_row(
            name,
            *(f"{value:.2f}" for value in (statistics.median(took), min(took), max(took))),
            f"{statistics.median(ratios):.2f}" if name.startswith("DuckDB") else "",
        )
    console.print(table)
    console.print(f"Clickmill: {lines / statistics.median(times['Clickmill']):,.0f} clicks per second")
    for name in ("Clickmill: ingest", "Clickmill: aggregate"):
        each = statistics.median(processor[name]) / lines * 1e6
        console.print(f"{name}: {each:.1f} s of Spark's processor time a million clicks")
    record("processor", *(used / lines * 1e6 for used in processor["Clickmill"]))
    record("memory", watch.stop())
    console.print(f"peak memory of the server and its workers: {watch.peak_mebibytes:,.0f} MiB")
    spark.stop()


def quality(home: Path, services: Services, clicks: int, rounds: int) -> None:
    """Validate 4 log hours: Spark jobs, the time that Spark worked, and all of it."""
    from pyspark.sql import SparkSession

    from spark_jobs.engine.session import configure
    from spark_jobs.engine.spark_status import SparkStatus
    from spark_jobs.engine.steps import step
    from spark_jobs.grouping.load import aggregate_measured
    from spark_jobs.ingest import job as ingest_job
    from spark_jobs.quality import job as quality_job
    from tests.support.job_times import job_times

    settings = replace(Settings.from_environment({}), home=home / "quality")
    lines = make_landing(settings.landing, 4, clicks)
    arguments = JobArguments("web", HourRange(START, START.plus(4)))
    os.environ["CLICKMILL_SPARK_UI_URL"] = services.spark_ui_url
    spark = configure(SparkSession.builder.remote(services.spark_remote).getOrCreate())
    status = SparkStatus.of(spark)
    assert status is not None
    jobs, worked, whole = [], [], []
    for turn in range(rounds + 1):
        # As in every hour, the tables have just been written; the first turn warms up.
        ingest_job.ingest(spark, settings, arguments)
        aggregate_measured(spark, settings, arguments)
        with step(spark, f"round {turn}"):
            took = seconds(lambda: quality_job.validate(spark, settings, arguments))
        times = job_times(status, f"round {turn}")
        jobs.append(len(times))
        worked.append((max(end for _, end in times) - min(start for start, _ in times)).total_seconds())
        whole.append(took)
    console.print(
        f"validate {lines:,} clicks, 4 log hours, each time right after they were written: "
        f"{', '.join(map(str, jobs))} Spark jobs; from the first job's start to the last one's end median "
        f"{statistics.median(worked[1:]):.1f} s ({min(worked[1:]):.1f} to {max(worked[1:]):.1f}; {worked[0]:.1f} on a "
        f"cold server), with judging, pages and writing {statistics.median(whole[1:]):.1f} s ({rounds} rounds)"
    )
    record("validate", *whole[1:])
    spark.stop()


def measuring(home: Path, services: Services, clicks: int, rounds: int) -> None:
    """Count the clicks of 4 log hours with the load of each instance measured and without, in turn."""
    from pyspark.sql import SparkSession

    from spark_jobs.aggregate.job import aggregate
    from spark_jobs.engine.session import configure
    from spark_jobs.grouping.load import aggregate_measured
    from spark_jobs.ingest import job as ingest_job

    settings = replace(Settings.from_environment({}), home=home / "measuring")
    lines = make_landing(settings.landing, 4, clicks)
    arguments = JobArguments("web", HourRange(START, START.plus(4)))
    os.environ["CLICKMILL_SPARK_UI_URL"] = services.spark_ui_url
    spark = configure(SparkSession.builder.remote(services.spark_remote).getOrCreate())
    ingest_job.ingest(spark, settings, arguments)
    with_load: list[float] = []
    without: list[float] = []
    for turn in range(4 * rounds + 2):
        pair = [(aggregate_measured, with_load), (aggregate, without)]
        for count, times in pair if turn % 2 else reversed(pair):
            took = seconds(lambda: count(spark, settings, arguments))  # noqa: B023
            if turn > 1:
                times.append(took)
    pairs = sorted(measured / other for measured, other in zip(with_load, without, strict=True))
    console.print(
        f"aggregate {lines:,} clicks, load of the instances measured or not, {4 * rounds} rounds in turn: median "
        f"{statistics.median(with_load):.2f} s against {statistics.median(without):.2f} s, ratio "
        f"{statistics.median(with_load) / statistics.median(without):.3f}; of the pairs median "
        f"{statistics.median(pairs):.3f}, middle half {pairs[len(pairs) // 4]:.2f} to {pairs[-len(pairs) // 4]:.2f}; "
        f"smallest {min(with_load):.2f} s against {min(without):.2f} s"
    )
    spark.stop()


def memory(home: Path) -> None:
    """Peak memory of a fresh server over 4 and over 24 log hours of the same size."""
    from pyspark.sql import SparkSession

    from spark_jobs.engine.session import configure
    from spark_jobs.grouping.load import aggregate_measured
    from spark_jobs.ingest import job as ingest_job

    peaks = []
    for hours in (4, 24):
        place = home / f"memory-{hours}"
        services = start(place)
        try:
            settings = replace(Settings.from_environment({}), home=place)
            lines = make_landing(settings.landing, hours, hours * 150_000)
            spark = configure(SparkSession.builder.remote(services.spark_remote).getOrCreate())
            arguments = JobArguments("web", HourRange(START, START.plus(hours)))
            watch = SparkWatch(services.home)
            took = seconds(lambda: ingest_job.ingest(spark, settings, arguments))  # noqa: B023 - called at once
            took += seconds(lambda: aggregate_measured(spark, settings, arguments))  # noqa: B023
            peaks.append(watch.stop())
            console.print(
                f"{hours} log hours, {lines:,} lines in one range: peak memory of the server and its workers "
                f"{peaks[-1]:,.0f} MiB, {took:.1f} s"
            )
            spark.stop()
        finally:
            stop(place)
    record("memory_of_day", peaks[1] / peaks[0])


def one_hour(services: Services, rounds: int, start: Hour, clicks: int) -> list[float]:
    """Seconds of one hour of `clicks` clicks through the DAG: from run start to run end."""
    hours = list(HourRange(start, start.plus(rounds + 1)))
    make_landing(services.home / "landing", len(hours), clicks * len(hours), start)
    api = AirflowApi(services)
    api.wait_for_dag(CLICKS_HOURLY)
    api.unpause(CLICKS_HOURLY)
    for hour in hours:
        outcome = run_hours(api, CLICKS_HOURLY, [hour], "web", again=False, at_once=1, display=Silent())
        assert not outcome.failures, outcome.failures
    runs = api.runs(CLICKS_HOURLY, hours[1:])  # the first warms up
    paths = [f"/api/v2/dags/{CLICKS_HOURLY}/dagRuns/{run.run_id}" for run in runs]
    took = [api.call("GET", path)["duration"] for path in paths]
    console.print(
        f"one hour of about {clicks:,} clicks through the DAG, from run start to run end: median "
        f"{statistics.median(took):.1f} s ({min(took):.1f} to {max(took):.1f}, {len(took)} runs)"
    )
    return took


def a_year(services: Services, rounds: int, first: Hour, clicks: int = 100) -> None:
    """A year in one range, its pages, and an hour before it, after it, and after the lake was maintained."""
    before = one_hour(services, rounds, first.plus(-100), clicks)
    record("year", one_range(services, console, first, 8_760, clicks))
    pages_of_a_year(services, first, first.plus(8_759), rounds)
    grown = one_hour(services, rounds, first.plus(8_760), clicks)
    maintain_year(services, console, first.plus(8_800))
    kept = one_hour(services, rounds, first.plus(8_800), clicks)
    record("hour_after_year", *(seconds / statistics.median(before) for seconds in grown))
    record("hour_maintained", *(seconds / statistics.median(before) for seconds in kept))


def database(home: Path, rounds: int) -> None:
    """A million published rows of one hour to PostgreSQL, in place of as many."""
    from tests.support.postgres_server import postgres_server
    from tests.support.published_rows import url_rows, write_published

    with postgres_server() as server:
        settings = replace(Settings.from_environment({}), home=home, results_database=server.address())
        rows = url_rows(START, *(f"https://www.example.com/p/{number}-of-a-shop" for number in range(1_000_000)))
        write_published(settings, PUBLISHED_CLICKS_BY_URL_HOURLY, rows)
        took = [seconds(lambda: copy_to_database(settings, [START])) for _ in range(rounds + 1)]
    console.print(
        f"a million rows to PostgreSQL: {', '.join(f'{duration:.1f}' for duration in took)} s, the first into no rows"
    )
    record("database", *took[1:])


def main() -> None:
    """Run the parts and print their tables."""
    clicks, rounds = int(os.environ.get("BENCH_CLICKS", "2000000")), int(os.environ.get("BENCH_ROUNDS", "5"))
    parts = os.environ.get("BENCH_ONLY", PARTS).split(",")
    cores, gibibytes = psutil.cpu_count(), psutil.virtual_memory().total / 2**30
    console.print(f"{cores} cores, {gibibytes:.0f} GiB, Python {platform.python_version()}")
    home = Path(tempfile.mkdtemp(prefix="cm-bench-"))
    try:
        if {"duckdb", "dag", "quality", "measuring", "month", "year", "empty", "reallog"} & set(parts):
            services = start(home)
            try:
                if "dag" in parts:
                    record("hour", *one_hour(services, rounds, START, 10_000))
                    record("small_hour", *one_hour(services, rounds, START.plus(100), 10))
                if "empty" in parts:
                    empty_hours(services, console, Hour.parse("2025-06-01T00"))
                if "reallog" in parts:
                    own_log(services, console, Path(os.environ["BENCH_LOG"]))
                if "month" in parts:
                    record("month", one_range(services, console, Hour.parse("2025-10-01T00"), 720, 10_000))
                    advice(services, console, Hour.parse("2025-10-01T00"), 720)
                if "year" in parts:
                    a_year(services, rounds, Hour.parse("2024-01-01T00"))
                if "duckdb" in parts:
                    against_duckdb(home, services, clicks, rounds)
                if "measuring" in parts:
                    measuring(home, services, clicks, rounds)
                if "quality" in parts:
                    quality(home, services, clicks, rounds)
            finally:
                stop(home)
        if "memory" in parts:
            memory(home)
        if "pages" in parts:
            pages("page", home / "pages", rounds)
        if "pages_in_s3" in parts:
            pages_in_s3(home / "pages-in-s3", rounds)
        if "database" in parts:
            database(home / "database", rounds)
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()

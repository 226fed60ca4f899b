"""Measure ranges through the DAG, as `make run LOGS=` runs them: a month of hours, and a year of small ones."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from rich.console import Console

from benchmarks.figures import record
from include.hours import Hour, HourRange
from include.landing import SUCCESS, hour_folder
from include.settings import Settings
from ops.airflow_api import CLICKS_HOURLY, AirflowApi
from ops.backfill import run_ranges
from ops.bootstrap import REPOSITORY
from ops.services.running import Services
from samples.sample_logs import SampleSpec, make_sample
from spark_jobs.retention import job as retention_job
from tests.end_to_end.silent_display import Silent


def one_range(
    services: Services,
    console: Console,
    start: Hour,
    hours: int,
    clicks_an_hour: int,
    empty: int = 0,
) -> float:
    """Seconds from landed to published, with `empty` landed hours after those of clicks; prints those of each task."""
    spec = SampleSpec(start=start, hours=hours, clicks_per_hour=clicks_an_hour, compression="gzip", files_per_hour=1)
    truth = make_sample(spec, services.home / "landing")
    lines = sum(hour.lines for hour in truth.log_hours.values())
    api = AirflowApi(services)
    api.wait_for_dag(CLICKS_HOURLY)
    api.unpause(CLICKS_HOURLY)
    wanted = list(HourRange(start, start.plus(hours + empty)))
    began = time.perf_counter()
    outcome = run_ranges(api, CLICKS_HOURLY, wanted, "web", again=True, display=Silent())
    took = time.perf_counter() - began
    assert not outcome.failures, outcome.failures
    console.print(f"{hours:,} hours of {lines:,} lines and {empty} empty ones, landed to published: {took:.1f} s")
    for run in api.runs(CLICKS_HOURLY, wanted):
        path = f"/api/v2/dags/{CLICKS_HOURLY}/dagRuns/{run.run_id}/taskInstances"
        tasks = api.call("GET", path, order_by="start_date")["task_instances"]
        parts = (f"{task['task_id']} {task['duration']:.1f}" for task in tasks if task["duration"])
        console.print(f"  {run.log_hours}: {', '.join(parts)}")
    return took


def empty_hours(services: Services, console: Console, start: Hour, hours: int = 24, empty: int = 696) -> None:
    """What an empty log hour adds to a range: `hours` with clicks, twice as the first warms up, then `empty` too."""
    landing = services.home / "landing"
    took = []
    for number, added in enumerate((0, 0, empty), start=1):
        first = start.plus(number * 1000)
        for number_of_hour in range(hours, hours + added):
            folder = hour_folder(landing, "web", first.plus(number_of_hour))
            folder.mkdir(parents=True)
            (folder / SUCCESS).touch()
        took.append(one_range(services, console, first, hours, 100, added))
    record("empty_hour", (took[2] - took[1]) / empty)


def own_log(services: Services, console: Console, log: Path) -> None:
    """`make run LOGS=` of an access log, the services being up."""
    environment = {**os.environ, "CLICKMILL_HOME": str(services.home), "LOGS": str(log), "FORMAT": "combined"}
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "clickmill", "run"], cwd=REPOSITORY, env=environment, check=True, stdout=sys.stderr
    )
    record("own_log", took := time.perf_counter() - began)
    console.print(f"make run LOGS={log.name}, services up: {took:.1f} s")


def advice(services: Services, console: Console, start: Hour, hours: int) -> None:
    """Advise on grouping by URL over the range, as a process of its own."""
    command = [sys.executable, "-m", "clickmill", "advise", "--source", "web", "--key", "url"]
    command += ["--from", str(start), "--to", str(start.plus(hours))]
    began = time.perf_counter()
    subprocess.run(
        command, cwd=REPOSITORY, env={**os.environ, **services.environment()}, check=True, stdout=subprocess.DEVNULL
    )
    record("advice", took := time.perf_counter() - began)
    console.print(f"advise_grouping over {hours:,} hours: {took:.1f} s")


def maintain_year(services: Services, console: Console, now: Hour) -> None:
    """`maintain_lake`, by which 60 days of clicks and landing files and 90 of hourly counts stay."""
    settings = Settings.from_environment(services.environment())
    pipeline = services.home / "maintained.toml"
    days = "clicks_days = 60\nlanding_days = 60\nquarantined_days = 30\ncounts_days = 90\n"
    pipeline.write_text(
        settings.pipeline_file.read_text(encoding="utf-8").replace("[retention]\n", f"[retention]\n{days}")
    )
    began = time.perf_counter()
    lines = retention_job.maintain(
        replace(settings, pipeline_file=pipeline), dry_run=False, kept=timedelta(0), now=now.start
    )
    console.print(*lines, f"maintain_lake: {time.perf_counter() - began:.1f} s", sep="\n")

"""Measure ranges through the DAG, as `make run LOGS=` runs them: a month of hours, and a year of small ones."""

from __future__ import annotations

import time

from rich.console import Console

from include.log_hours import Hour, HourRange
from ops.airflow_api import CLICKS_HOURLY, AirflowApi
from ops.backfill import run_ranges
from ops.services.running import Services
from samples.sample_logs import SampleSpec, make_sample
from tests.end_to_end.silent_display import Silent


def one_range(services: Services, console: Console, name: str, start: Hour, hours: int, clicks_an_hour: int) -> None:
    """From landed to published: seconds of each task, and of all."""
    spec = SampleSpec(start=start, hours=hours, clicks_per_hour=clicks_an_hour, compression="gzip", files_per_hour=1)
    truth = make_sample(spec, services.home / "landing")
    lines = sum(hour.lines for hour in truth.log_hours.values())
    api = AirflowApi(services)
    api.wait_for_dag(CLICKS_HOURLY)
    api.unpause(CLICKS_HOURLY)
    wanted = list(HourRange(start, start.plus(hours)))
    began = time.perf_counter()
    outcome = run_ranges(api, CLICKS_HOURLY, wanted, "web", again=True, display=Silent())
    took = time.perf_counter() - began
    assert not outcome.failures, outcome.failures
    console.print(f"{name}, {hours:,} hours and {lines:,} lines, from landed to published: {took:.1f} s")
    for run in api.runs(CLICKS_HOURLY, wanted):
        path = f"/api/v2/dags/{CLICKS_HOURLY}/dagRuns/{run.run_id}/taskInstances"
        tasks = api.call("GET", path, order_by="start_date")["task_instances"]
        parts = (f"{task['task_id']} {task['duration']:.1f}" for task in tasks if task["duration"])
        console.print(f"  {run.log_hours}: {', '.join(parts)}")

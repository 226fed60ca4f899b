"""Measure the pages on data quality: on a disk, in an object store, over a year."""

from __future__ import annotations

import os
import statistics
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from rich.table import Table

from benchmarks.figures import record
from benchmarks.timing import console, seconds
from include.hours import Hour
from include.settings import Settings
from ops.services.running import Services


def pages(name: str, home: Path, rounds: int, data: Path | None = None) -> None:
    """The pages on data quality over 10,000 validated partitions, data in the home or elsewhere."""
    from include import quality_index
    from tests.support.quality_rows import append, validated_hours

    settings = replace(Settings.from_environment({}), home=home, data_folder=data)
    first, hours = Hour.parse("2026-01-01T00"), 2500
    *runs, newest = validated_hours(first, hours)  # four partitions an hour: two sources, the click hour, an operator
    for run in runs:
        append(home / "lake", run)
    if data is not None:
        copied_tree(home / "lake", settings.lake)
    rows = sum(map(len, runs))
    rebuilt = seconds(lambda: quality_index.catch_up(settings))
    append(settings.lake, newest)
    by_one = seconds(lambda: quality_index.catch_up(settings))
    size = settings.quality_index.stat().st_size / 1e6
    console.print(
        f"index of {rows:,} rows in {len(runs):,} commits: rebuilt in {rebuilt:.1f} s, {size:.0f} MB; ", end=""
    )
    console.print(f"one more commit {1000 * by_one:.0f} ms")

    last = first.plus(hours - 1)
    asked = {
        "overview, 3 days": "/",
        "overview, 31 days": f"/?first={last.plus(-30 * 24).day}&last={last.day}",
        "overview, 31 days of a source and a table": f"/?first={last.plus(-30 * 24).day}&source=web&table=clicks",
        "an hour, with 7 days of each metric": f"/hours/{last}",
        "a metric, 92 days": "/metric?suite=clicks&check=quarantined_share&series=web&days=92",
    }
    record(name, *time_pages(settings, asked, f"{4 * hours:,} validated partitions", rounds)["overview, 3 days"])


def copied_tree(folder: Path, place: Path) -> None:
    """All files of a folder, in an object store too: commits there, one by one, take minutes."""
    for file in folder.rglob("*"):
        if file.is_file():
            copy = place / str(file.relative_to(folder))
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())


def pages_in_s3(home: Path, rounds: int) -> None:
    """The same, data in an S3 server of this machine."""
    from include.storage import place
    from tests.support.s3_server import s3_server

    with s3_server() as server, patch.dict(os.environ, server.variables):
        pages("page_in_s3", home, rounds, place(server.make_bucket("pages")) / "clickmill")


def pages_of_a_year(services: Services, first: Hour, last: Hour, rounds: int) -> None:
    """The same over the year that the range has published."""
    settings = replace(Settings.from_environment({}), home=services.home)
    asked = {
        "overview, 3 days": "/",
        "overview, the year": f"/?first={first.day}&last={last.day}",
        "an hour, with 7 days of each metric": f"/hours/{last}",
        "a metric, 92 days": "/metric?suite=clicks&check=quarantined_share&series=web&days=92",
    }
    record("page_of_year", *time_pages(settings, asked, "a year of hours", rounds)["overview, the year"])


def time_pages(settings: Settings, asked: dict[str, str], title: str, rounds: int) -> dict[str, list[float]]:
    """How many milliseconds each page takes, from the request to the answer's last byte; prints a table of them."""
    from starlette.testclient import TestClient

    from plugins.data_quality import app as pages_app

    app = pages_app.make_app(settings)
    for guard in (pages_app.may_see_airflow, pages_app.may_read_clicks_hourly):
        app.dependency_overrides[guard] = lambda: None
    app.dependency_overrides[pages_app.runs_of_hour] = lambda: []
    client = TestClient(app)
    table = Table(title=f"Pages over {title}: milliseconds, {rounds} rounds in turn")
    for heading in ("", "median", "smallest", "largest", "median CPU", "kB"):
        table.add_column(heading, justify="left" if not heading else "right")
    times: dict[str, list[float]] = {name: [] for name in asked}
    processor_times: dict[str, list[float]] = {name: [] for name in asked}
    sizes = {name: len(client.get(path).content) for name, path in asked.items()}  # warms up
    for _ in range(rounds):
        for name, path in asked.items():
            begun = time.process_time()
            times[name].append(1000 * seconds(lambda: client.get(path).raise_for_status()))  # noqa: B023 - called at once
            # On a machine that others use as well, this is what the page itself takes.
            processor_times[name].append(1000 * (time.process_time() - begun))
    for name, took in times.items():
        processor_time = statistics.median(processor_times[name])
        numbers = (statistics.median(took), min(took), max(took), processor_time, sizes[name] / 1000)
        table.add_row(name, *(f"{number:.0f}" for number in numbers))
    console.print(table)
    return times

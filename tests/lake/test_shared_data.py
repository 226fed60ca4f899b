"""Jobs of several homes, as of several machines, on one folder of data: one lake, and one writer of each table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from filelock import FileLock, Timeout

from include.tables import CLICKS, PUBLISHED_CLICKS_BY_URL_HOURLY
from spark_jobs.lake.lake import Lake
from tests.support.temporary_lake import TemporaryLake, assert_same_tables, click

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from include.settings import Settings

HOUR, NEXT = "2026-03-01T05", "2026-03-01T06"


@pytest.mark.spark
def test_jobs_of_two_homes_in_turn_are_as_those_of_one(lake: TemporaryLake, tmp_path: Path) -> None:
    settings = replace(lake.settings, data_folder=tmp_path / "data")
    first, other = (TemporaryLake(lake.spark, replace(settings, home=tmp_path / name)) for name in ("one", "other"))
    for landed in (lake, first):
        for hour, clicks in ((HOUR, 5), (NEXT, 3)):
            lines = [click(f"{hour}-{n}", f"{hour}:{n:02d}:00Z", f"http://shop.test/{n % 2}") for n in range(clicks)]
            landed.land(hour, {"a.json": b"".join(lines)})
    for hour in (HOUR, NEXT):
        lake.run_all(hour)
    for job, runs in (("ingest", first), ("aggregate", other), ("validate", first), ("publish", other)):
        runs.run(job, HOUR)
    other.run_all(NEXT)
    assert_same_tables(first.tables(), lake.tables())
    assert {row["visitor_id"] for row in first.rows(CLICKS)} == {row["visitor_id"] for row in lake.rows(CLICKS)}
    assert len(other.rows(PUBLISHED_CLICKS_BY_URL_HOURLY)) == 4
    assert other.settings.report == first.settings.report
    assert first.settings.report.exists()
    for home in (first, other):
        left = {path.name for path in home.settings.home.rglob("*") if path.is_file()}
        assert left <= {"quality-index.lock", *(f"quality_index.sqlite{end}" for end in ("", "-wal", "-shm"))}, left


def test_a_job_waits_for_that_of_another_home(settings: Settings, tmp_path: Path) -> None:
    first, other = (
        Lake(cast("SparkSession", None), replace(settings, home=tmp_path / name, data_folder=tmp_path / "data"))
        for name in ("one", "other")
    )
    with first.locked(), pytest.raises(Timeout), FileLock(other.settings.locks / "lake.lock", timeout=0):
        pass
    with other.locked():
        pass

"""Jobs on a disk that is full: one line each, and the same tables once there is space."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from include.home import REPOSITORY
from include.settings import Settings
from include.stored_rows import StoredLake
from include.tables import CLICKS, PUBLISHED_CLICKS_BY_URL_HOURLY
from tests.support.small_disk import filled, small_disk

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HOUR = "2026-03-01T05"


def run(job: str, home: Path, remote: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "clickmill", job, "--hour", HOUR],
        env=os.environ | {"SPARK_REMOTE": remote, "CLICKMILL_HOME": str(home), "RUST_BACKTRACE": "1"},
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_each_job_says_in_one_line_that_a_disk_is_full_and_does_its_work_later(
    settings: Settings, spark_remote: str
) -> None:
    with small_disk(settings.home, 48):
        subprocess.run(
            [
                *(sys.executable, "-m", "samples", "--landing", settings.landing, "--source", "web"),
                *("--from", HOUR, "--hours", "1", "--clicks-per-hour", "2000"),
            ],
            cwd=REPOSITORY, check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        for job in ("ingest", "aggregate", "validate", "publish"):
            with filled(settings.home):
                ended = run(job, settings.home, spark_remote)
                assert ended.returncode == 1, job
                (line,) = ended.stderr.splitlines()
                assert line.startswith("failed: a disk is full"), line
            ended = run(job, settings.home, spark_remote)
            assert ended.returncode == 0, ended.stderr
        stored = StoredLake(settings.lake)
        counts = stored.read_rows(PUBLISHED_CLICKS_BY_URL_HOURLY, ["click_count"], [])
        assert sum(row["click_count"] for row in counts) == len(stored.read_rows(CLICKS, ["line"], []))

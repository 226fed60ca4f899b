"""Homes of several machines that share CLICKMILL_DATA: their lake has one Spark server at a time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

from include import only_spark
from include.errors import ClickmillError, UsageError
from include.only_spark import require_safe_commits, the_only_spark
from ops.bootstrap import REPOSITORY
from ops.home import Home, find_home
from ops.services.running import require_same_data
from tests.support.spark_server import SparkServer

#: Another machine's server.
HOLDS = """
import time
from include.only_spark import the_only_spark
from ops.home import find_home
with the_only_spark(find_home()):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def homes(tmp_path: Path) -> tuple[Home, Home]:
    """Two homes with one folder of data."""
    first, other = (Home(tmp_path / name, tmp_path / "data") for name in ("one", "other"))
    for home in (first, other):
        home.make()
    return first, other


def variables(home: Home) -> dict[str, str]:
    return {"CLICKMILL_HOME": str(home.path), "CLICKMILL_DATA": str(home.data)}


def test_a_lake_has_one_server_until_that_is_gone(homes: tuple[Home, Home], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(only_spark, "PATIENCE_SECONDS", 0.2)
    first, other = homes
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS], env=os.environ | variables(first), cwd=REPOSITORY, stdout=subprocess.PIPE
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            with pytest.raises(ClickmillError) as refused, the_only_spark(other):
                pass
            assert f"the lake {first.lake} has a Spark driver already: " in str(refused.value)
            assert f"process {holder.pid} of" in str(refused.value)
        finally:
            holder.send_signal(signal.SIGKILL)
    with the_only_spark(other):
        pass


@pytest.mark.servers
@pytest.mark.slow
def test_a_server_holds_its_lake_and_removes_what_killed_jobs_have_left(tmp_path: Path) -> None:
    server = SparkServer.in_folder(tmp_path / "home")
    left = server.home.scratch / "staged-of-a-killed-job"
    left.mkdir(parents=True)
    lock = FileLock(server.home.locks / "spark-server.lock", timeout=0)
    try:
        server.start()
        assert not left.exists()
        with pytest.raises(Timeout):
            lock.acquire()
    finally:
        server.stop()
    with lock.acquire(timeout=30):
        pass


def test_services_are_not_asked_about_other_data_than_theirs(homes: tuple[Home, Home], tmp_path: Path) -> None:
    first, _ = homes
    first.service_file.write_text(json.dumps({"data": str(first.data)}), encoding="utf-8")
    require_same_data(first)
    with pytest.raises(UsageError, match=f"run on the data in {first.data}, and CLICKMILL_DATA says {first.path}: "):
        require_same_data(Home(first.path))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fs.s3a.performance.flags", "mkdir, Create"),
        ("fs.s3a.performance.flags", "*"),
        ("fs.s3a.create.performance", "true"),
    ],
)
def test_a_server_that_would_overwrite_commits_is_refused(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"{name} is .* loses them without an error"):
        require_safe_commits({name: value}.get)
    require_safe_commits({"fs.s3a.performance.flags": "mkdir,delete", "fs.s3a.create.performance": "false"}.get)


def test_homes_share_data_and_nothing_else(homes: tuple[Home, Home]) -> None:
    first, other = homes
    shared = ("landing", "lake", "reports", "streams", "locks", "scratch", "visitor_keys")
    own = ("run", "secrets", "logs", "airflow", "quality_index", "kafka_topics", "spark_local", "spark_remote_file")
    for name in shared:
        assert getattr(first, name) == getattr(other, name), name
        assert getattr(first, name).is_relative_to(first.data), name
    for name in own:
        assert getattr(first, name).is_relative_to(first.path), name
        assert getattr(other, name).is_relative_to(other.path), name
    assert {folder.stat().st_mode & 0o777 for folder in first.data.iterdir()} == {0o700}
    assert find_home(None, variables(first)) == first

"""Spark's programs in containers: their settings, and what a killed one has left."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from include.errors import UsageError
from ops.containers.spark import SPARK_PROGRAMS, empty_folders, write_settings
from ops.home import Home, find_home
from ops.services.environment import program_environment
from ops.setup.prerequisites import find_java


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = find_home(tmp_path / "home", {})
    made.make()
    return made


@pytest.fixture
def environment(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr("ops.containers.spark.gettempdir", lambda: str(tmp_path))
    variables = {
        "PATH": os.environ["PATH"], "SPARK_LOCAL_DIRS": str(tmp_path / "work"), "CLICKMILL_SPARK_SECRET": "s3cret",
        "CLICKMILL_SPARK_PORT": "15002", "CLICKMILL_SPARK_UI_PORT": "4040", "CLICKMILL_SPARK_MASTER": "spark://m:7077",
    }  # fmt: skip
    return program_environment(home, find_java(), variables)


def test_containers_settings_come_last_and_are_the_containers_alone(environment: dict[str, str]) -> None:
    file = write_settings("spark-connect", environment)
    # As Java's Properties: of two lines for one key the last holds.
    settings = dict(line.split(maxsplit=1) for line in file.read_text().splitlines() if line.startswith("spark."))

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert settings["spark.connect.grpc.binding.address"] == "0.0.0.0"
    assert settings["spark.authenticate"] == "true"
    assert settings["spark.authenticate.secret"] == "s3cret"
    assert settings["spark.master"] == "spark://m:7077"
    assert write_settings("spark-connect", environment) == file


def test_without_a_secret_nothing_is_written(environment: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="CLICKMILL_SPARK_SECRET"):
        write_settings("spark-master", environment | {"CLICKMILL_SPARK_SECRET": ""})
    assert not (tmp_path / "spark-master.conf").exists()


@pytest.mark.parametrize("program", SPARK_PROGRAMS)
def test_what_a_killed_program_has_left_is_removed_and_no_others(
    home: Home, environment: dict[str, str], tmp_path: Path, program: str
) -> None:
    work, drivers = tmp_path / "work", home.spark_local
    for folder in (work, drivers):
        (folder / "blockmgr-1").mkdir(parents=True)
        (folder / "blockmgr-1" / "block").write_text("left")
        (folder / "library.so").write_text("left")
    empty_folders(home, program, environment)

    assert list(work.iterdir()) == []
    # The driver's own, which all containers see.
    assert bool(list(drivers.iterdir())) == (program != "spark-connect")


def test_no_secret_is_on_a_command_line(environment: dict[str, str], tmp_path: Path) -> None:
    for program, command in SPARK_PROGRAMS.items():
        words = command(Path(environment["SPARK_HOME"]), tmp_path / "settings", environment)
        assert "s3cret" not in " ".join(words), program
        assert str(tmp_path / "settings") in words, program

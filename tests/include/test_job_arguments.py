from __future__ import annotations

import os
import subprocess
import sys

import pytest

from include.errors import UsageError
from include.job_arguments import JobArguments, job_parser
from include.settings import REPOSITORY, Settings

JOBS = sorted(path.stem for path in (REPOSITORY / "spark_jobs").glob("*.py") if "__main__" in path.read_text())
OVER_HOURS = ["aggregate_clicks", "ingest_clicks", "publish_clicks", "validate_clicks"]


def _run(settings: Settings, job: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "CLICKMILL_"))}
    environment |= {
        "CLICKMILL_HOME": str(settings.home),
        "CLICKMILL_SOURCES": str(settings.sources_file),
        "CLICKMILL_PIPELINE": str(settings.pipeline_file),
    }
    command = [sys.executable, "-m", f"spark_jobs.{job}", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)


def test_one_hour_is_a_range_of_length_one() -> None:
    arguments = JobArguments.of("web", None, None, "2026-03-01T05")
    assert [str(hour) for hour in arguments.log_hours] == ["2026-03-01T05"]
    assert arguments == JobArguments.of("web", "2026-03-01T05", "2026-03-01T06")


@pytest.mark.parametrize(
    "given",
    [(None, None, None), ("2026-03-01T05", None, None), (None, "2026-03-01T05", None),
     ("2026-03-01T05", "2026-03-01T06", "2026-03-01T05"), (None, "2026-03-01T06", "2026-03-01T05")],
)  # fmt: skip
def test_hours_are_given_one_way_or_the_other(given: tuple[str | None, str | None, str | None]) -> None:
    with pytest.raises(UsageError, match="expected either --hour, or both --from and --to"):
        JobArguments.of("web", *given)


def test_source_is_all_unless_told() -> None:
    assert job_parser("x", None).parse_args(["--hour", "2026-03-01T05"]).source == "all"


def test_there_are_jobs() -> None:
    assert set(OVER_HOURS) < set(JOBS)


@pytest.mark.slow  # a process for each command, with all its imports
@pytest.mark.parametrize("job", JOBS)
def test_help_needs_no_server(settings: Settings, job: str) -> None:
    shown = _run(settings, job, "--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith(f"usage: python -m spark_jobs.{job} ")


@pytest.mark.slow  # a process for each command, with all its imports
@pytest.mark.parametrize("job", OVER_HOURS)
def test_wrong_hour_is_one_line_and_exit_code_2(settings: Settings, job: str) -> None:
    refused = _run(settings, job, "--hour", "nonsense")
    assert refused.returncode == 2
    assert refused.stderr == "wrong arguments: not an hour: 'nonsense'; expected UTC such as 2026-03-01T05\n"
    assert refused.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--colour", "red"], "unrecognized arguments: --colour red; see --help"),
        (["--from", "2026-03-01T05", "--to", "2026-03-01T05"], "empty range of hours"),
        (["--hour", "2026-03-01T05", "--source", "nothing"], "no source 'nothing' in"),
        (["--hour", "2026-03-01T05"], "no Spark Connect server is known"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_code_2(settings: Settings, arguments: list[str], said: str) -> None:
    refused = _run(settings, "ingest_clicks", *arguments)
    assert refused.returncode == 2
    assert said in refused.stderr
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--source", "nothing", "--logs", "x"], 2, "no source 'nothing'"),
        (["--source", "web", "--logs", "/nowhere/x.gz"], 2, "no file /nowhere/x.gz"),
        (["--source", "web", "--logs", __file__], 1, "no line of"),
        (["--source", "web"], 2, "--logs"),
    ],
)
def test_logs_that_cannot_be_landed(settings: Settings, arguments: list[str], code: int, said: str) -> None:
    refused = _run(settings, "land_logs", *arguments)
    assert refused.returncode == code
    assert said in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not list(settings.landing.rglob("*.gz*"))

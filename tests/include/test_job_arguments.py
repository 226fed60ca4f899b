from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import IO, cast

import pytest

from include.errors import UsageError
from include.job_arguments import JobArguments, job_parser
from include.settings import REPOSITORY, Settings

JOBS = sorted(path.stem for path in (REPOSITORY / "spark_jobs").glob("*.py") if "__main__" in path.read_text())
OVER_HOURS = ["aggregate_clicks", "ingest_clicks", "publish_clicks", "validate_clicks"]

Run = Callable[..., subprocess.CompletedProcess[str]]
#: Runs each command that is a line of its input in a process of its own, which has the packages that take longest to
#: import already. A line is JSON: the module, its arguments, and variables; the answer too: exit code, stdout, stderr.
_SHELL = """
import json, os, runpy, sys, tempfile, traceback
import great_expectations, pyspark.sql.connect.session

for line in sys.stdin:
    module, arguments, variables = json.loads(line)
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        child = os.fork()
        if child == 0:
            os.dup2(stdout.fileno(), 1)
            os.dup2(stderr.fileno(), 2)
            os.environ.update(variables)
            sys.argv = [module, *arguments]
            code = 1
            try:
                runpy.run_module(module, run_name="__main__", alter_sys=True)
            except SystemExit as end:
                code = end.code or 0
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = [os.pread(file.fileno(), 1 << 20, 0).decode() for file in (stdout, stderr)]
    print(json.dumps([code, *texts]), flush=True)
"""


def _variables(settings: Settings) -> dict[str, str]:
    return {
        "CLICKMILL_HOME": str(settings.home),
        "CLICKMILL_SOURCES": str(settings.sources_file),
        "CLICKMILL_PIPELINE": str(settings.pipeline_file),
    }


def _others() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "CLICKMILL_"))}


def _run(settings: Settings, job: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = _others() | _variables(settings)
    command = [sys.executable, "-m", f"spark_jobs.{job}", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def run_quickly() -> Iterator[Run]:
    """As ``_run``; what a command needs for seconds, such as pyspark, is imported once for all."""
    command, pipe = [sys.executable, "-c", _SHELL], subprocess.PIPE
    with subprocess.Popen(
        command, cwd=REPOSITORY, env=_others(), stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as shell:
        stdin, stdout, stderr = cast(tuple[IO[str], ...], (shell.stdin, shell.stdout, shell.stderr))

        def run(settings: Settings, job: str, *arguments: str) -> subprocess.CompletedProcess[str]:
            request = [f"spark_jobs.{job}", arguments, _variables(settings)]
            print(json.dumps(request), file=stdin, flush=True)
            return subprocess.CompletedProcess(request, *json.loads(stdout.readline()))

        yield run
        stdin.close()
        assert stderr.read() == ""
        assert shell.wait(60) == 0


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


@pytest.mark.slow  # all that the commands import
@pytest.mark.parametrize("job", JOBS)
def test_help_needs_no_server(settings: Settings, run_quickly: Run, job: str) -> None:
    shown = run_quickly(settings, job, "--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith(f"usage: python -m spark_jobs.{job} ")


@pytest.mark.slow  # all that the commands import
@pytest.mark.parametrize("job", OVER_HOURS)
def test_wrong_hour_is_one_line_and_exit_code_2(settings: Settings, run_quickly: Run, job: str) -> None:
    refused = run_quickly(settings, job, "--hour", "nonsense")
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

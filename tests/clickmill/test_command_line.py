"""What the command line says before any work: help, wrong arguments, completion; and where it finds the services."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import date
from functools import cache
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from clickmill import options, upkeep
from clickmill.app import COMMANDS, name_of, run
from clickmill.work import print_json
from include import job_arguments
from include.buckets import MAX_BUCKETS
from include.days import Grain
from include.errors import EndedByHandError, UsageError
from include.hours import Hour, HourRange
from include.settings import REPOSITORY, Settings
from ops.services.running import complete_environment
from tests.ops.service_ports import PORTS
from tests.support.refusals import enter_home, refusal

NAMES = [name_of(command) for of_heading in COMMANDS.values() for command in of_heading]
OVER_HOURS = ["aggregate", "ingest", "publish", "validate"]
HOUR = "2026-03-01T05"


@pytest.fixture(autouse=True)
def a_home(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    enter_home(settings, monkeypatch)


def command_line(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """As from a shell."""
    command = [sys.executable, str(REPOSITORY / "clickmill"), *arguments]
    return subprocess.run(
        command, cwd="/", env=os.environ | variables, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


# --- help -----------------------------------------------------------------------------------------


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert not run([])
    without_arguments = capsys.readouterr().out
    assert not run(["--help"])
    text = capsys.readouterr().out
    assert text == without_arguments
    assert len(NAMES) == len(set(NAMES)) > 30
    for heading in COMMANDS:
        assert f"\n{heading}:\n" in text
    for name in NAMES:
        assert f"\n  {name} " in text


@pytest.mark.parametrize("name", NAMES)
def test_each_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert not run([name, "--help"])
    text = capsys.readouterr().out
    assert not run([name, "-h"])
    assert capsys.readouterr().out == text
    assert text.startswith(f"Usage: clickmill {name} ")
    assert "2 wrong arguments or configuration" in " ".join(text.split())


def test_what_is_declared_is_what_the_rooms_know() -> None:
    assert get_args(options.Grain) == get_args(Grain)
    (declared,) = get_type_hints(upkeep.repartition, include_extras=True)["buckets"].__metadata__
    assert declared.max == MAX_BUCKETS


# --- wrong arguments ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "no such command 'nope'; see clickmill --help"),
        (["--colour"], "no such option: --colour; see clickmill --help"),
        (["ingest", "--colour", "red"], "no such option: --colour"),
        (["ingest", "more"], "got unexpected extra argument(s) (more); see clickmill ingest --help"),
        (["ingest", "--hour"], "option '--hour' requires an argument; see clickmill ingest --help"),
        (["ingest", "--hour", "--allow-missing"], "not an hour: '--allow-missing'"),
        (["ingest", "--from", HOUR, "--to", HOUR], "empty range of hours"),
        (["ingest", "--hour", HOUR, "--source", "nothing"], "no source 'nothing' in"),
        (["ingest", "--hour", HOUR, "--source", "\u202enöthing\n"], "no source "),
        (["ingest", "--hour", HOUR], "no Spark Connect server is known"),
        (["topology", "--hour", HOUR], "missing argument 'JOB': expected one of ingest, "),
        (["topology", "show", "--hour", HOUR], "'show' is not one of 'ingest', 'aggregate'"),
        (
            ["topology", "ingest", "--hour", HOUR, "--html", "/nowhere/x.html"],
            "--html /nowhere/x.html: expected a file",
        ),
        (["repartition", "--buckets", "many"], "invalid value for '--buckets': 'many' should be a valid integer"),
        (["repartition", "--buckets", "4097"], "'4097' should be less than or equal to 4096"),
        (["movers", "--day", "yesterday"], "not a day: 'yesterday'; expected a day, UTC"),
        (["results", "--time-zone", "UTC"], "--time-zone UTC without --grain"),
        (
            ["backfill", "--source=web", f"--from={HOUR}", "--to=2026-03-02T00", "--json"],
            "expected --dry-run beside it",
        ),
        (["results", "--grain", "year"], "'year' is not one of 'hour', 'day', 'week', 'month'"),
        (["undo", "b1", "--by", " ", "--because", "-x"], "no by given"),
        (["erase", "--visitor", "a", "--by", "Ada", "--because", "b"], "nothing is erased: expected --yes"),
        (["land", "--source", "nothing", "x"], "no source 'nothing'"),
        (["land", "--source", "web", "/nowhere/x.gz"], "no file /nowhere/x.gz"),
        (["land", "--source", "web"], "missing argument 'LOGS';"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.setattr(sys, "stdin", open(os.devnull))
    code, line = refusal(capsys, monkeypatch, *arguments)
    assert code == 2
    assert line.startswith("wrong arguments: ")
    assert message in line


@pytest.mark.parametrize("name", OVER_HOURS)
def test_wrong_hour_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    refused = refusal(capsys, monkeypatch, name, "--hour", "nonsense")
    assert refused == (2, "wrong arguments: not an hour: 'nonsense'; expected UTC such as 2026-03-01T05")


def test_a_log_without_times_is_not_landed(
    settings: Settings, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, line = refusal(capsys, monkeypatch, "land", "--source", "web", __file__)
    assert (code, line.startswith("failed: no line of ")) == (1, True)
    assert not list(settings.landing.rglob("*.gz*"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--withdraw", "x", "--source", "web"], "--withdraw takes a replay as it was: expected no --source beside it"),
        (["--source", "web", "--to", HOUR], "no --from given: expected all of --source, --from, --to; or --withdraw"),
        (["--source", "web", "--from", HOUR, "--to", HOUR], "empty range of hours"),
        (["--source", "web", "--from", HOUR, "--to", "2026-03-01T06", "--rule", "/nowhere"], "the rule cannot be read"),
    ],
)
def test_a_replay_is_of_log_hours_or_withdrawn(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(["replay", *arguments, "--by", "Ada", "--because", "fixed"])


def test_texts_may_begin_with_a_dash_and_hold_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    signatures: list[tuple[str, str]] = []

    def sign(by: str, because: str) -> None:
        signatures.append((by, because))
        raise UsageError("enough")

    monkeypatch.setattr(job_arguments, "require_signed", sign)
    for text in ("-x", "--because", "été 日本", "a\nb"):
        with pytest.raises(UsageError, match="enough"):
            run(["undo", "b1", "--by", "Ada", "--because", text])
    assert signatures == [("Ada", text) for text in ("-x", "--because", "été 日本", "a\nb")]


def test_ctrl_c_is_one_line_and_exit_code_130(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(job_arguments, "require_signed", interrupted)
    code, line = refusal(capsys, monkeypatch, "undo", "b1", "--by", "Ada", "--because", "b")
    assert code == EndedByHandError.exit_code == 130
    assert line == "interrupted: what is half done counts for nothing; run it again"


@pytest.mark.parametrize("fault", [EOFError("compressed file ended"), BrokenPipeError(32, "broken pipe")])
def test_a_fault_is_not_taken_for_an_answer_or_a_closed_pipe(fault: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise fault

    monkeypatch.setattr(job_arguments, "require_signed", fail)
    with pytest.raises(type(fault), match=str(fault.args[-1])):
        run(["undo", "b1", "--by", "Ada", "--because", "b"])


def test_who_reads_only_the_beginning_ends_it_without_a_word() -> None:
    command = f'"{sys.executable}" "{REPOSITORY / "clickmill"}" locks; echo $? >&2'
    ran = subprocess.run(["sh", "-c", f"({command}) | true"], cwd="/", capture_output=True, text=True)
    assert ran.stderr in ("0\n", "1\n")


def test_json_is_of_plain_values(capsys: pytest.CaptureFixture[str]) -> None:
    from spark_jobs.backfill.plan import Request
    from spark_jobs.publish.shown_movers import Mover

    hours = HourRange(Hour.parse(HOUR), Hour.parse("2026-03-01T07"))
    print_json({"request": Request("web", hours), "day": date(2026, 3, 1), "rows": [Mover("http://a/é", -1, 2, 3)]})
    assert json.loads(capsys.readouterr().out) == {
        "request": {
            "source": "web", "log_hours": "2026-03-01T05..2026-03-01T07", "chunk_hours": 168, "is_staged": False,
        },
        "day": "2026-03-01",
        "rows": [{"url": "http://a/é", "change": -1, "clicks": 2, "clicks_before": 3}],
    }  # fmt: skip


# --- from a shell ---------------------------------------------------------------------------------


def test_from_any_folder_it_runs_this_tree() -> None:
    shown = command_line("status")
    assert (shown.returncode, shown.stderr) == (1, "")
    assert shown.stdout == f"no services run for {os.environ['CLICKMILL_HOME']}\n"
    assert json.loads(command_line("status", "--json").stdout)["services"] == []
    assert json.loads(command_line("locks", "--json").stdout) == []


def test_a_blank_variable_of_make_is_none() -> None:
    shown = command_line("show-stream", SOURCE=" ")
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.startswith("wrong arguments: no source 'web_stream' in ")


#: What a shell is to suggest for the last word of a line, among others.
SUGGESTED = [
    ("clickmill dec", {"decide", "decide-backfill"}),
    ("clickmill ingest --a", {"--allow-missing"}),
    ("clickmill decide --decision ", {"publish", "drop", "release"}),
    ("clickmill ingest --source ", {"all", "web", "access"}),
    ("clickmill topology ", {"ingest", "publish"}),
]


@cache
def completion(shell: str) -> str:
    """The script that --install-completion leaves for a shell, which says by itself which it is."""
    script = command_line("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert (script.returncode, script.stderr) == (0, "")
    return script.stdout


@pytest.mark.parametrize(("line", "suggested"), SUGGESTED)
def test_bash_completes_commands_options_and_values(line: str, suggested: set[str], tmp_path: Path) -> None:
    (tmp_path / "clickmill").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{REPOSITORY / "clickmill"}" "$@"\n')
    (tmp_path / "clickmill").chmod(0o755)
    words = " ".join(f"'{word}'" for word in line.split(" "))
    script = f"""
        {completion("bash")}
        COMP_WORDS=({words})
        COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _clickmill_completion clickmill
        printf '%s\n' "${{COMPREPLY[@]}}"
    """
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "-c", script], env=os.environ | {"PATH": path}, capture_output=True, text=True, cwd="/", check=True
    )
    assert ran.stderr == ""
    assert suggested <= set(ran.stdout.split())


@pytest.mark.parametrize(("line", "suggested"), SUGGESTED)
def test_zsh_completes_commands_options_and_values(line: str, suggested: set[str]) -> None:
    """As its script asks; zsh is not everywhere."""
    assert "_CLICKMILL_COMPLETE=complete_zsh clickmill)" in completion("zsh")
    answer = command_line(_TYPER_COMPLETE_ARGS=line, _CLICKMILL_COMPLETE="complete_zsh")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert suggested <= set(re.findall(r'^(?:_arguments .*\(\()?"([^"]+)"', answer.stdout, re.MULTILINE))


# --- the services of the home ---------------------------------------------------------------------


@pytest.fixture
def served(settings: Settings) -> Settings:
    """A home whose services run, as far as its files say."""
    settings.run.mkdir(parents=True)
    ports = PORTS
    details = {"airflow": ports.airflow, "spark": ports.spark, "spark_ui": ports.spark_ui, "data": str(settings.data)}
    settings.service_file.write_text(json.dumps(details))
    settings.spark_remote_file.write_text(f"sc://localhost:{ports.spark}/;token=to-ken\n")
    return settings


def test_where_the_services_answer_is_found(served: Settings) -> None:
    environment = {"CLICKMILL_HOME": str(served.home)}
    complete_environment(environment)
    assert environment == {
        "CLICKMILL_HOME": str(served.home),
        "SPARK_REMOTE": f"sc://localhost:{PORTS.spark}/;token=to-ken",
        "CLICKMILL_SPARK_UI_URL": f"http://localhost:{PORTS.spark_ui}",
        "CLICKMILL_AIRFLOW_URL": f"http://localhost:{PORTS.airflow}",
        "AIRFLOW_HOME": str(served.airflow),
        "GX_ANALYTICS_ENABLED": "false",
    }


@pytest.mark.parametrize("variable", ["SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"])
def test_another_spark_is_left_alone(served: Settings, variable: str) -> None:
    environment = {"CLICKMILL_HOME": str(served.home), variable: "x"}
    complete_environment(environment)
    assert environment == {"CLICKMILL_HOME": str(served.home), variable: "x", "GX_ANALYTICS_ENABLED": "false"}


def test_without_services_nothing_is_added(settings: Settings) -> None:
    environment = {"CLICKMILL_HOME": str(settings.home)}
    complete_environment(environment)
    assert "SPARK_REMOTE" not in environment


def test_services_on_other_data_are_an_error(served: Settings, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="CLICKMILL_DATA says"):
        complete_environment({"CLICKMILL_HOME": str(served.home), "CLICKMILL_DATA": str(tmp_path / "other")})

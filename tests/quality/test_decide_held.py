"""What can be decided, from a shell and in Airflow."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from clickmill import changes
from clickmill.app import main
from include.errors import NotHeldError
from include.holds import Failure, findings_text
from include.hours import Hour
from spark_jobs.publish import decide_held
from tests.dags.test_dags import task_function


def decide(answered: dict[str, Any], shown: str | None = None) -> None:
    """As the task decide_held does."""
    task_function("held_hours", "decide_held")(answered, shown, params={"hour": "2026-03-01T05"}, ti=None)


SHOWN = (Failure("web 2026-03-01T05", "share", "too many", "clicks", "share = 0.7", 0.7, None, 0.5),)
RIGHT = {"--hour": "2026-03-01T05", "--decision": "publish", "--by": "Ada", "--because": "seen"}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"--hour": "2026-03-01"}, "not an hour: '2026-03-01'"),
        ({"--decision": "keep"}, "'keep' is not one of 'publish', 'drop', 'release'"),
        ({"--by": " "}, "no by given"),
        ({"--because": ""}, "no because given"),
        ({"--because": None}, "missing option '--because'"),
        ({"--by": None}, "missing option '--by'"),
        ({"--hour": None}, "expected --hour HOUR, or --from HOUR and --to HOUR"),
        ({"--from": "2026-03-01T05", "--to": "2026-03-01T07"}, "expected --hour HOUR, or --from HOUR and --to HOUR"),
        ({"--hour": None, "--to": "2026-03-01T07"}, "expected --hour HOUR, or --from HOUR and --to HOUR"),
        ({"--reason": "web"}, "--reason 'web' goes with --from and --to"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_code_2(
    wrong: dict[str, str | None], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [f"{name}={value}" for name, value in (RIGHT | wrong).items() if value is not None]
    monkeypatch.setattr(sys, "argv", ["clickmill", "decide", *arguments])
    monkeypatch.setattr(changes, "session", lambda settings: pytest.fail("asked for a session"))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    output = capsys.readouterr().err
    assert message in output
    assert len(output.splitlines()) == 1


@pytest.fixture
def decisions(monkeypatch: pytest.MonkeyPatch) -> list[decide_held.Decision]:
    """What the task hands to the job, in place of doing it."""
    made: list[decide_held.Decision] = []

    def run(spark: Any, settings: Any, decision: decide_held.Decision) -> list[str]:
        made.append(decision)
        return ["done"]

    monkeypatch.setattr(decide_held, "decide", run)
    monkeypatch.setitem(sys.modules, "spark_jobs.engine.session", SimpleNamespace(configure=lambda spark: spark))  # type: ignore[arg-type]
    return made


def answer(chosen: str, reason: str | None = "seen") -> dict[str, Any]:
    return {
        "chosen_options": [chosen],
        "params_input": {} if reason is None else {"reason": reason},
        "responded_by_user": {"id": "7", "name": "ada"},
        "responded_at": datetime(2026, 3, 1, tzinfo=UTC),
    }


def test_an_answer_becomes_the_decision_of_who_gave_it(decisions: list[decide_held.Decision]) -> None:
    decide(answer("Publish anyway"), findings_text(SHOWN))
    # Shown nothing, it is for nothing.
    decide(answer("Drop", "no"))
    hour = Hour.parse("2026-03-01T05")
    assert decisions == [
        decide_held.Decision(hour, "publish", "ada", "seen", SHOWN),
        decide_held.Decision(hour, "drop", "ada", "no", ()),
    ]


def test_keeping_an_hour_held_does_nothing_and_needs_no_reason(decisions: list[decide_held.Decision]) -> None:
    with pytest.raises(AirflowSkipException, match="2026-03-01T05 stays held"):
        decide(answer("Keep held", None))
    assert decisions == []


@pytest.mark.parametrize("reason", [None, "", "  "])
def test_a_decision_without_a_reason_is_not_made(reason: str | None, decisions: list[decide_held.Decision]) -> None:
    with pytest.raises(AirflowFailException, match="no because given"):
        decide(answer("Publish anyway", reason))
    assert decisions == []


def test_an_hour_that_was_lifted_meanwhile_ends_the_question(
    decisions: list[decide_held.Decision], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: Any) -> list[str]:
        raise NotHeldError("2026-03-01T05 is not held: published at noon")

    monkeypatch.setattr(decide_held, "decide", run)
    with pytest.raises(AirflowSkipException, match=r"nothing to decide: .*published at noon"):
        decide(answer("Drop"))

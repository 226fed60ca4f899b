"""make run: Airflow runs each hour once; what failed or is held is shown."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from include.hours import Hour, HourRange
from ops import backfill
from ops.airflow_api import ApiError, HourRun, TaskTry, error_message, readable_log
from ops.backfill import Display, in_ranges, run_hours, run_ranges, split_hours
from ops.run import exit_code_of_held, print_failures, print_held
from ops.services.running import Services
from tests.ops.log_hours import hour

# --- hours ----------------------------------------------------------------------------------------


def run_of(number: int, state: str, source: str = "web", run_id: str = "") -> HourRun:
    return HourRun(run_id or f"{source}-{number}-{state}", HourRange.single(hour(number)), source, state, "backfill")


def test_hour_is_done_only_by_a_success_of_the_same_source() -> None:
    runs = [run_of(0, "success"), run_of(1, "success", "edge"), run_of(2, "failed"), run_of(3, "running")]

    missing, watched = split_hours([hour(n) for n in range(5)], runs, "web", again=False)

    assert missing == [hour(1), hour(2), hour(4)]
    assert watched == [runs[3]]


def test_newest_run_of_an_hour_counts() -> None:
    runs = [run_of(0, "success"), run_of(0, "failed"), run_of(1, "failed"), run_of(1, "success")]

    missing, _ = split_hours([hour(0), hour(1)], runs, "web", again=False)

    assert missing == [hour(0)]


def test_when_asked_again_hours_that_succeeded_are_run_again_but_not_those_under_way() -> None:
    runs = [run_of(0, "success"), run_of(1, "queued")]

    missing, watched = split_hours([hour(0), hour(1)], runs, "web", again=True)

    assert missing == [hour(0)]
    assert watched == [runs[1]]


class FakeAirflow:
    """Airflow as far as a backfill goes: one at a time; every second look at the runs ends the oldest."""

    def __init__(self, runs: Sequence[HourRun] = (), failing: Sequence[Hour] = (), busy: int = 0) -> None:
        self.all = list(runs)
        self.failing = set(failing)
        self.holding: set[Hour] = set()
        self.is_asked = True
        self.busy = busy
        self.asked: list[tuple[str, str, bool]] = []
        self.open: list[int] = []
        self.passed_over: set[Hour] = set()
        self.looks = 0

    def runs(self, dag_id: str, hours: Sequence[Hour]) -> list[HourRun]:
        shown = [run for run in self.all if not set(hours).isdisjoint(run.log_hours)]
        self.looks += 1
        for place, run in enumerate(self.all):
            if not run.is_done and self.looks % 2 == 0:
                state = "success" if self.failing.isdisjoint(run.log_hours) else "failed"
                self.all[place] = replace(run, state=state)
                break
        return shown

    def run_range(self, dag_id: str, log_hours: HourRange, source: str) -> HourRun:
        assert all(run.is_done for run in self.all), "one range at a time"
        run = HourRun(f"run-{len(self.all)}", log_hours, source, "queued", "manual")
        self.all.append(run)
        self.asked.append((str(log_hours.start), str(log_hours.end), True))
        return run

    def result(self, dag_id: str, run_id: str, task_id: str) -> list[dict[str, Any]] | None:
        assert task_id == "publish_clicks"
        (run,) = [run for run in self.all if run.run_id == run_id]
        reasons = [
            f"web {held}: expected: less; found more" for held in sorted(self.holding.intersection(run.log_hours))
        ]
        return [{"conf": {"hour": str(run.log_hours.start), "reasons": reasons}}]

    def backfill(self, dag_id: str, hours: Sequence[Hour], source: str, at_once: int, again: bool) -> int:
        if self.open or self.busy:
            self.busy = max(0, self.busy - 1)
            raise ApiError("POST /api/v2/backfills", 409, "There is already a running backfill")
        for log_hour in hours:
            if log_hour in self.passed_over:
                self.passed_over.remove(log_hour)
                continue
            name = f"run-{len(self.all)}"
            self.all.append(HourRun(name, HourRange.single(log_hour), source, "queued", "backfill"))
        self.asked.append((str(min(hours)), str(max(hours)), again))
        self.open.append(len(self.asked))
        return len(self.asked)

    def close_backfill(self, number: int) -> None:
        assert all(run.is_done for run in self.all), "it would fail runs that are still queued"
        self.open.remove(number)

    def tasks(self, dag_id: str, run_id: str, state: str | None = None) -> list[TaskTry]:
        return [TaskTry(run_id, "ingest_clicks", "failed", 2, -1)] if state == "failed" else []

    def runs_with_mapped(self, dag_id: str, task_id: str, run_ids: Sequence[str]) -> set[str]:
        assert (dag_id, task_id) == ("clicks_hourly", "ask_about_held")
        asking = self.holding if self.is_asked else set()
        return {run.run_id for run in self.all if run.run_id in run_ids and asking.intersection(run.log_hours)}

    def log(self, dag_id: str, task: TaskTry) -> list[dict[str, Any] | str]:
        return [{"event": f"log of {task.run_id}"}]


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch) -> Console:
    monkeypatch.setattr(backfill, "POLL_SECONDS", 0)
    return Console(file=io.StringIO(), width=200)


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def run_all(api: FakeAirflow, numbers: Sequence[int], console: Console, again: bool = False) -> backfill.Outcome:
    hours = [hour(number) for number in numbers]
    return run_hours(api, "clicks_hourly", hours, "web", again, 2, Display(console))  # type: ignore[arg-type]


def test_hours_are_backfilled_range_by_range_and_each_backfill_is_closed(console: Console) -> None:
    api = FakeAirflow()

    outcome = run_all(api, [0, 1, 2, 7], console)

    assert (outcome.already_done, outcome.succeeded, outcome.failures) == (0, 4, [])
    assert api.asked == [("2026-03-01T00", "2026-03-01T02", True), ("2026-03-01T07", "2026-03-01T07", True)]
    assert api.open == []


def test_hours_that_succeeded_are_not_run_again(console: Console) -> None:
    api = FakeAirflow([run_of(0, "success"), run_of(1, "success")])

    assert run_all(api, [0, 1], console) == backfill.Outcome(2, 0, [], [])
    assert api.asked == []
    assert printed(console) == ""


def test_runs_under_way_are_only_watched(console: Console) -> None:
    api = FakeAirflow([run_of(0, "running"), run_of(1, "queued")])

    assert run_all(api, [0, 1], console).succeeded == 2
    assert api.asked == []


def test_another_backfill_is_waited_for_and_said_once(console: Console) -> None:
    api = FakeAirflow(busy=3)

    assert run_all(api, [0], console).succeeded == 1
    assert printed(console).count("another backfill of clicks_hourly is open") == 1


def test_hour_that_airflow_passed_over_is_asked_for_again(console: Console) -> None:
    api = FakeAirflow()
    api.passed_over = {hour(1)}

    assert run_all(api, [0, 1, 2], console).succeeded == 3
    assert api.asked[-1][:2] == ("2026-03-01T01", "2026-03-01T01")


def test_failed_hour_is_reported_with_its_task_and_log_and_the_others_go_on(console: Console) -> None:
    api = FakeAirflow(failing=[hour(1)])

    outcome = run_all(api, [0, 1, 2], console)

    assert outcome.succeeded == 2
    assert [(str(f.run.log_hours), f.task and f.task.task_id, f.lines) for f in outcome.failures] == [
        ("2026-03-01T01", "ingest_clicks", ["log of run-1"])
    ]


def test_an_hour_that_is_held_is_known_from_one_that_failed(console: Console) -> None:
    api = FakeAirflow(failing=[hour(1)])
    api.holding = {hour(1), hour(2)}

    outcome = run_all(api, [0, 1, 2], console)

    assert (outcome.succeeded, outcome.held) == (2, ["web 2026-03-01T02"])
    assert [str(failure.run.log_hours) for failure in outcome.failures] == ["2026-03-01T01"]


def test_ranges_are_one_run_each_with_small_gaps_in_them_and_a_month_at_most(console: Console) -> None:
    api = FakeAirflow()
    hours = [hour(number) for number in (0, 1, 25, 51, *range(800, 1700))]

    outcome = run_ranges(api, "clicks_hourly", hours, "web", False, Display(console))  # type: ignore[arg-type]

    assert (outcome.already_done, outcome.succeeded, outcome.failures, outcome.held) == (0, len(hours), [], [])
    expected = [(0, 26), (51, 52), (800, 800 + 744), (800 + 744, 1700)]
    assert api.asked == [(str(hour(first)), str(hour(end)), True) for first, end in expected]
    assert in_ranges([]) == []


def test_hours_of_a_range_that_was_run_are_done_and_of_one_under_way_are_watched(console: Console) -> None:
    ran = HourRun("ran", HourRange(hour(0), hour(3)), "web", "success", "manual")
    runs = HourRun("runs", HourRange(hour(3), hour(6)), "web", "running", "manual")
    api = FakeAirflow([ran, runs])

    outcome = run_ranges(api, "clicks_hourly", [hour(n) for n in range(8)], "web", False, Display(console))  # type: ignore[arg-type]

    assert (outcome.already_done, outcome.succeeded) == (3, 5)
    assert api.asked == [(str(hour(6)), str(hour(8)), True)]
    assert printed(console).splitlines()[-1].startswith("5 of 5 hours done")


def test_of_a_range_it_is_named_for_what_the_checks_failed(console: Console) -> None:
    hours = [hour(number) for number in range(5)]
    for is_asked, held in (
        (True, ["web 2026-03-01T02", "web 2026-03-01T03"]),
        (False, []),  # decided on: nothing is held
    ):
        api = FakeAirflow()
        api.holding, api.is_asked = {hour(2), hour(3)}, is_asked
        assert run_ranges(api, "clicks_hourly", hours, "web", True, Display(console)).held == held  # type: ignore[arg-type]


def test_a_held_hour_is_exit_code_3_unless_it_was_planted() -> None:
    planted, other = "web 2026-03-01T08", "web 2026-03-01T07"

    assert exit_code_of_held([], is_sample=True) == 0
    assert exit_code_of_held([planted], is_sample=True) == 0
    assert exit_code_of_held([planted, other], is_sample=True) == 3
    assert exit_code_of_held([planted], is_sample=False) == 3


def test_what_is_held_is_shown_with_the_page_where_to_decide(tmp_path: Path, console: Console) -> None:
    services = Services(tmp_path, 8081, 15003, 4041, "admin", "pass-word", "to-ken")

    print_held(["web 2026-03-01T08"], {"2026-03-01T08"}, services, True, console)
    print_held(["web 2026-03-01T08"], {"2026-03-01T09", "2026-03-01T08"}, services, True, console)
    print_held(["web 2026-03-01T09"], {}, services, True, console)

    lines = printed(console).splitlines()
    assert any("web 2026-03-01T08: a critical check failed (planted" in line for line in lines)
    assert "decide on 2026-03-01T08, or fix the cause and run again:" in lines
    assert "decide on 2026-03-01T08 and 1 more, or fix the cause and run again:" in lines
    assert lines.count("http://localhost:8081/plugin/data-quality") == 2
    assert any(line.startswith("web 2026-03-01T09: a critical check failed;") for line in lines)
    assert any("decided already, or no longer held" in line for line in lines)
    print_held([], {}, services, True, console)
    assert printed(console).splitlines() == lines


def test_other_refusals_of_airflow_are_not_waited_out(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    api = FakeAirflow()

    asked = iter([ApiError("POST /api/v2/backfills", 422, "no such parameter"), AssertionError("asked again")])

    def refuse(*_arguments: object, **_options: object) -> int:
        raise next(asked)

    monkeypatch.setattr(api, "backfill", refuse)
    with pytest.raises(ApiError, match="422: no such parameter"):
        run_all(api, [0], console)


def test_progress_is_a_line_whenever_an_hour_has_ended(console: Console) -> None:
    run_all(FakeAirflow([run_of(0, "queued"), run_of(1, "queued")]), [0, 1, 2], console)

    lines = printed(console).splitlines()
    assert [line.partition(" hours")[0] for line in lines] == [
        "0 of 3",
        "1 of 3",
        "2 of 3",
        "3 of 3",
    ]


# --- failures -------------------------------------------------------------------------------------


LOG: list[dict[str, Any] | str] = [
    {"event": "::group::Pre Execute"},
    {"event": "reading 2 files"},
    {"event": "::endgroup::"},
    {
        "event": "Task failed with exception",
        "error_detail": [
            {"exc_type": "KeyError", "exc_value": "'ts'"},
            {
                "exc_type": "MissingLandingError",
                "exc_value": "no landing partition for web 2026-03-01T05\ncheck the uploader"
                "\n\nJVM stacktrace:\njava.lang.Exception\n\tat org.apache.Spark",
            },
        ],
    },
]


def test_log_is_made_readable() -> None:
    assert readable_log([*LOG, "plain\ntext"]) == [
        "reading 2 files",
        "Task failed with exception",
        "KeyError: 'ts'",
        "MissingLandingError: no landing partition for web 2026-03-01T05",
        "check the uploader",
        "plain",
        "text",
    ]


def test_error_message_is_the_first_line_of_the_last_exception() -> None:
    assert error_message(LOG) == "MissingLandingError: no landing partition for web 2026-03-01T05"
    assert error_message([{"event": "fine"}]) == ""


def test_failures_are_shown_with_their_logs_as_plain_text(tmp_path: Path, console: Console) -> None:
    services = Services(tmp_path, 8081, 15003, 4041, "admin", "pass-word", "to-ken")
    run = run_of(5, "failed")
    task = TaskTry(run.run_id, "ingest_clicks", "failed", 1, -1)
    failures = [backfill.Failure(run, task, ["[red]not markup[/red] /x"])] * 5

    print_failures(failures, services, console)

    assert printed(console).count("failed web 2026-03-01T05 ingest_clicks") == 3
    assert "[red]not markup[/red] /x" in printed(console)
    assert "… and 2 more: http://localhost:8081" in printed(console)

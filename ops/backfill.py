"""Run log hours through Airflow's backfill, and watch them until all have ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

from include.hours import MOST_HOURS_A_RUN, MOST_HOURS_BETWEEN, Hour, HourRange, contiguous
from ops.airflow_api import AirflowApi, ApiError, HourRun, TaskTry, error_message, readable_log

POLL_SECONDS = 0.5
LOG_LINES_SHOWN = 12
# The task that finds what is held, and the one that asks a person about it, of which there is one for each hour.
PUBLISH, ASK = "publish_clicks", "ask_about_held"


@dataclass(frozen=True)
class Failure:
    """A task that failed, with the end of its log."""

    run: HourRun
    task: TaskTry | None
    lines: list[str]


@dataclass(frozen=True)
class Outcome:
    """What became of the hours that were asked for.

    ``held`` names what a critical check failed for, such as ``web 2026-03-01T08``: what it touches is held, the rest of
    the run is published.
    """

    already_done: int
    succeeded: int
    failures: list[Failure]
    held: list[str]


def split_hours(
    hours: Sequence[Hour], runs: Sequence[HourRun], source: str, again: bool
) -> tuple[list[Hour], list[HourRun]]:
    """Return the hours that still have to be asked for, and the runs of others that need only be watched.

    An hour counts as done when its newest run over this very source succeeded: Airflow's own check for runs
    that exist knows hours, not sources.
    """
    newest = {hour: run for run in runs if run.source == source for hour in run.log_hours}
    under_way = {hour for hour in hours if hour in newest and not newest[hour].is_done}
    done = {hour for hour in hours if hour in newest and newest[hour].state == "success" and not again}
    watched = {newest[hour].run_id: newest[hour] for hour in hours if hour in under_way}
    return [hour for hour in hours if hour not in under_way | done], list(watched.values())


class Display(Progress):
    """How many hours are done: a bar in a terminal, else a line whenever one more is, for a log file."""

    def __init__(self, console: Console) -> None:
        columns = ("hours", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), "{task.fields[now]}")
        super().__init__(*columns, console=console, disable=not console.is_terminal)
        self._hours = self.add_task("hours", total=None, now="")
        self._began, self._shown = time.monotonic(), -1

    def show(self, done: int, total: int, now: str) -> None:
        """Show how many runs have ended and what goes on."""
        self.update(self._hours, completed=done, total=total, now=now)
        if self.disable and done != self._shown:
            self._shown = done
            seconds = time.monotonic() - self._began
            self.note(f"{done} of {total} hours done after {seconds:.0f} s{'; ' + now if now else ''}")

    def note(self, message: str) -> None:
        """Say something once."""
        self.console.print(message, markup=False, highlight=False, soft_wrap=True)


def _backfill_hours(
    api: AirflowApi, dag_id: str, hours: HourRange, source: str, at_once: int, display: Display
) -> tuple[int, list[HourRun]]:
    """Start one backfill, return its id and its runs; wait while another backfill of the DAG is open."""
    wanted = list(hours)
    known = {run.run_id for run in api.runs(dag_id, wanted)}
    has_noted = False
    while True:
        try:
            # The hours were chosen by source already, so Airflow need not skip any.
            backfill = api.backfill(dag_id, wanted, source, at_once, again=True)
            break
        except ApiError as error:
            if error.status != 409:
                raise
            if not has_noted:
                display.note(f"another backfill of {dag_id} is open; waiting for it: Airflow takes one at a time")
                has_noted = True
            time.sleep(2 * POLL_SECONDS)
    begun = [run for run in api.runs(dag_id, wanted) if run.run_id not in known and run.source == source]
    return backfill, begun


def _failures(api: AirflowApi, dag_id: str, runs: Iterable[HourRun]) -> list[Failure]:
    failures = []
    for run in runs:
        failed = api.tasks(dag_id, run.run_id, state="failed")
        if failed:
            failures += [Failure(run, task, readable_log(api.log(dag_id, task))[-LOG_LINES_SHOWN:]) for task in failed]
        else:
            failures.append(Failure(run, None, []))
    return failures


def _running_tasks(
    api: AirflowApi, dag_id: str, runs: Iterable[HourRun], display: Display, shown: set[tuple[str, str, int]]
) -> str:
    """Name what runs at the moment; say once for each failed try that it will be tried again."""
    active: list[str] = []
    for run in runs:
        if run.state != "running":
            continue
        for task in api.tasks(dag_id, run.run_id):
            name = f"{run.log_hours} {task.task_id}"
            if task.state == "running":
                active.append(name)
            failed_try = (run.run_id, task.task_id, task.try_number)
            if task.state == "up_for_retry" and failed_try not in shown:
                shown.add(failed_try)
                message = error_message(api.log(dag_id, task)) or "its log says no more"
                display.note(f"{name} failed and will be tried again: {message}")
    return ", ".join(active)


def run_hours(
    api: AirflowApi,
    dag_id: str,
    hours: Sequence[Hour],
    source: str,
    again: bool,
    at_once: int,
    display: Display,
) -> Outcome:
    """Backfill log hours of one source, a run each, watch them to their end, and return what became of them.

    Args:
        again: run hours again that succeeded before; otherwise they are skipped.
        at_once: how many hours may run at a time.
    """
    backfills: list[int] = []

    def begin(wanted: HourRange) -> list[HourRun]:
        # Airflow takes no other backfill before this one is closed.
        while backfills:
            api.close_backfill(backfills.pop())
        backfill, begun = _backfill_hours(api, dag_id, wanted, source, at_once, display)
        backfills.append(backfill)
        return begun

    outcome = _run(api, dag_id, hours, source, again, display, contiguous, begin)
    while backfills:
        api.close_backfill(backfills.pop())
    return outcome


def run_ranges(
    api: AirflowApi, dag_id: str, hours: Sequence[Hour], source: str, again: bool, display: Display
) -> Outcome:
    """Run log hours of one source as few runs over ranges, and return what became of them; as ``run_hours``.

    Hours between them that did not land are taken along.
    """

    def begin(wanted: HourRange) -> list[HourRun]:
        return [api.run_range(dag_id, wanted, source)]

    return _run(api, dag_id, hours, source, again, display, in_ranges, begin)


def in_ranges(hours: Iterable[Hour]) -> list[HourRange]:
    """The hours as ranges of at most a month, in order, small gaps between them included."""
    wholes = contiguous(hours, MOST_HOURS_BETWEEN)
    return [chunk for whole in wholes for chunk in whole.chunks(MOST_HOURS_A_RUN)]


def _run(
    api: AirflowApi,
    dag_id: str,
    hours: Sequence[Hour],
    source: str,
    again: bool,
    display: Display,
    as_ranges: Callable[[Iterable[Hour]], list[HourRange]],
    begin: Callable[[HourRange], list[HourRun]],
) -> Outcome:
    asked = sorted(set(hours))
    missing, watched = split_hours(asked, api.runs(dag_id, asked), source, again)
    already_done = len(asked) - len(missing) - len(_hours_of(watched, asked))
    ranges = as_ranges(missing)
    total = len(asked) - already_done
    shown: set[tuple[str, str, int]] = set()
    ended: dict[str, HourRun] = {}
    if not total:
        return Outcome(already_done, 0, [], [])
    with display:
        while True:
            # The next range starts when the runs before it have ended.
            if ranges and all(run.run_id in ended for run in watched):
                wanted = ranges.pop(0)
                begun = begin(wanted)
                watched += begun
                # Airflow passes over an hour that another source's run is busy with: ask again.
                ranges = contiguous(set(wanted) - _hours_of(begun, wanted)) + ranges
            ids = {run.run_id for run in watched}
            current = [run for run in api.runs(dag_id, asked) if run.run_id in ids] if ids else []
            ended = {run.run_id: run for run in current if run.is_done}
            running_tasks = _running_tasks(api, dag_id, current, display, shown)
            display.show(len(_hours_of(ended.values(), asked)), total, running_tasks)
            if len(ended) == len(ids) and not ranges:
                break
            time.sleep(max(POLL_SECONDS, len(watched) / 200))
    failed = [run for run in ended.values() if run.state == "failed"]
    succeeded = [run for run in ended.values() if run.state != "failed"]
    asking = api.runs_with_mapped(dag_id, ASK, [run.run_id for run in succeeded])
    held = sorted((run for run in succeeded if run.run_id in asking), key=lambda run: run.log_hours.start)
    return Outcome(
        already_done,
        len(_hours_of(succeeded, asked)),
        _failures(api, dag_id, failed),
        # Late clicks of a held hour are held too, by the run that counts them.
        list(dict.fromkeys(partition for run in held for partition in _held_for(api, dag_id, run))),
    )


def _hours_of(runs: Iterable[HourRun], among: Iterable[Hour]) -> set[Hour]:
    return {hour for run in runs for hour in run.log_hours}.intersection(among)


def _held_for(api: AirflowApi, dag_id: str, run: HourRun) -> list[str]:
    """What the run's checks failed for, by the questions that it asks."""
    questions = api.result(dag_id, run.run_id, PUBLISH) or ()
    reasons = {reason for question in questions for reason in question["conf"]["reasons"]}
    return sorted({reason.partition(": ")[0] for reason in reasons})

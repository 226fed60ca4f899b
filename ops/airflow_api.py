"""Airflow's REST API, as far as a backfill needs it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any
from urllib.parse import quote

import httpx

from include.errors import ClickmillError, UsageError
from include.hours import Hour, HourRange
from ops.services.running import Services

PAGE = 100
PATIENCE_SECONDS = 30
MOST_MESSAGE_LINES = 6
CLICKS_HOURLY = "clicks_hourly"
HELD_HOURS = "held_hours"


class ApiError(ClickmillError):
    """Airflow refused a request."""

    def __init__(self, request: str, status: int, detail: str) -> None:
        # Of a value that a form refuses Airflow prints the whole schema.
        super().__init__(f"Airflow answered {request} with {status}: {detail.partition(chr(10))[0]}")
        self.status = status
        self.detail = detail


@dataclass(frozen=True)
class HourRun:
    """One DAG run over one log hour, its partition, or over a range of them."""

    run_id: str
    log_hours: HourRange
    source: str
    state: str
    kind: str

    @property
    def is_done(self) -> bool:
        """Whether it has ended, well or badly."""
        return self.state in ("success", "failed")


@dataclass(frozen=True)
class TaskTry:
    """One task of a DAG run, at its last try."""

    run_id: str
    task_id: str
    state: str
    try_number: int
    map_index: int


class AirflowApi:
    """A client that logs in by itself, and waits out a short absence or a locked database."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._token = ""
        self._client = httpx.Client(
            base_url=f"http://127.0.0.1:{services.airflow_port}",
            timeout=60,
            # No proxy: the shell's http_proxy is for the world outside.
            trust_env=False,
            # Airflow may close an idle connection just when it is used again, and nobody knows what became of a POST.
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, **query: Any) -> Any:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        answer = self._client.request(method, path, json=body, params=query, headers=headers)
        if answer.is_success:
            return answer.json()
        try:
            detail = answer.json()["detail"]
        except (ValueError, KeyError, TypeError):
            detail = answer.text
        raise ApiError(f"{method} {answer.url.raw_path.decode()}", answer.status_code, str(detail)[:500])

    def _log_in(self) -> None:
        self._token = ""
        body = {"username": self._services.airflow_user, "password": self._services.airflow_password}
        self._token = str(self._send("POST", "/auth/token", body)["access_token"])

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None, **query: Any) -> Any:
        """Send one request and return the answer's JSON; None values of the query are left out.

        Raises:
            ApiError: Airflow refused.
            ClickmillError: Airflow cannot be reached.
        """
        asked = {name: value for name, value in query.items() if value is not None}
        # A second run or connection of the same name is refused; what else is made by POST would be made twice.
        is_named = not {"connection_id", "dag_run_id"}.isdisjoint(body or {})
        is_safe = method != "POST" or path.endswith("/list") or is_named
        passing = (500, 503) if is_safe else (503,)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                if not self._token:
                    self._log_in()
                return self._send(method, path, body, **asked)
            except ApiError as error:
                if error.status == 401 and self._token:
                    self._token = ""  # it has expired
                # 503: another writer holds SQLite's lock; the request was not carried out. 500: it may have been.
                elif error.status not in passing or time.monotonic() > deadline:
                    raise
            except (httpx.HTTPError, ValueError) as error:
                if time.monotonic() > deadline:
                    raise ClickmillError(
                        f"Airflow does not answer at {self._services.airflow_url} ({error}); look at: make status"
                    ) from error
            time.sleep(0.5)

    def _pages(self, path: str, key: str, **query: Any) -> Iterator[dict[str, Any]]:
        offset = 0
        while True:
            answer = self.call("GET", path, limit=PAGE, offset=offset, **query)
            yield from answer[key]
            offset += PAGE
            if len(answer[key]) < PAGE:
                return

    # --- DAGs -------------------------------------------------------------------------------------

    def wait_for_dag(self, dag_id: str, seconds: float = 90) -> None:
        """Wait until the DAG has been parsed.

        Raises:
            ClickmillError: it has not been in that time; an import error is shown.
        """
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.call("GET", f"/api/v2/dags/{dag_id}")
                return
            except ApiError as error:
                if error.status != 404:
                    raise
            broken = self.call("GET", "/api/v2/importErrors")["import_errors"]
            if broken or time.monotonic() > deadline:
                reasons = "; ".join(
                    f"{broken_file['filename']}: {str(broken_file['stack_trace']).strip().splitlines()[-1]}"
                    for broken_file in broken
                )
                raise ClickmillError(f"Airflow has no DAG {dag_id}: {reasons or 'no file in dags/ declares it'}")
            time.sleep(0.5)

    def wait_for_source(self, dag_id: str, source: str, seconds: float = 120) -> None:
        """Wait until the DAG's form has the source: one that was declared since Airflow has read its file is not in it.

        Raises:
            ClickmillError: it has not been in that time.
        """
        self.wait_for_dag(dag_id)
        deadline = time.monotonic() + seconds
        while True:
            dag = self.call("GET", f"/api/v2/dags/{dag_id}/details")
            if source in dag["params"]["source"]["schema"]["enum"]:
                return
            if time.monotonic() > deadline:
                raise ClickmillError(
                    f"Airflow's form of {dag_id} has no source {source} after {seconds:.0f} s, though it is declared; "
                    f"expected that it reads dags/{dag_id}.py again: look at its import errors, and run this again"
                )
            # Again and again: what it reads soon after the last time, it does not write down.
            self.call("PUT", f"/api/v2/parseDagFile/{dag['file_token']}")
            time.sleep(2)

    def unpause(self, dag_id: str) -> None:
        """Let the DAG's runs be scheduled."""
        self.call("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": False})

    # --- runs -------------------------------------------------------------------------------------

    def runs(self, dag_id: str, hours: Sequence[Hour]) -> list[HourRun]:
        """Return the DAG's runs over any of these log hours, oldest first."""
        wanted = set(hours)
        path = f"/api/v2/dags/{dag_id}/dagRuns"
        first, last = min(wanted).day.isoformat(), max(wanted).day.isoformat()
        of_partitions = self._pages(path, "dag_runs", order_by="id", partition_date_gte=first, partition_date_lte=last)
        by_hand = self._pages(path, "dag_runs", order_by="id", run_type=["manual"])
        answers = {run["dag_run_id"]: run for run in (*of_partitions, *by_hand)}.values()
        runs = [_hour_run(run) for run in sorted(answers, key=lambda run: str(run["queued_at"]))]
        return [run for run in runs if run and not wanted.isdisjoint(run.log_hours)]

    def run_range(self, dag_id: str, log_hours: HourRange, source: str) -> HourRun:
        """Ask for one run over all these log hours."""
        conf = {"source": source, "from": log_hours.start.start.isoformat(), "to": log_hours.end.start.isoformat()}
        # Of several runs over the same hours each has its own name.
        run_id = f"{source}_{log_hours.start}_to_{log_hours.end}_{datetime.now(UTC):%Y%m%dT%H%M%S}"
        body = {"dag_run_id": run_id, "logical_date": None, "conf": conf}
        path = f"/api/v2/dags/{dag_id}/dagRuns"
        try:
            run = self.call("POST", path, body)
        except ApiError as error:
            if error.status != 409:
                raise
            # It was made, and the answer was an error.
            run = self.call("GET", f"{path}/{quote(run_id, safe='')}")
        return HourRun(run["dag_run_id"], log_hours, source, run["state"], run["run_type"])

    def backfill(self, dag_id: str, hours: Sequence[Hour], source: str, at_once: int, again: bool) -> int:
        """Ask Airflow to backfill the log hours from the first to the last; return the backfill's id.

        Args:
            at_once: how many hours may run at a time.
            again: whether hours that succeeded are run again; those that failed always are.
        """
        body = {
            "dag_id": dag_id,
            # For a partitioned DAG both are partition dates, and both are included.
            "from_date": min(hours).start.isoformat(),
            "to_date": max(hours).start.isoformat(),
            "dag_run_conf": {"source": source},
            "reprocess_behavior": "completed" if again else "failed",
            "max_active_runs": at_once,
        }
        path = "/api/v2/backfills"
        try:
            return int(self.call("POST", path, body)["id"])
        except ApiError as error:
            if error.status != 500:
                raise
            made = [
                backfill
                for backfill in self._pages(path, "backfills", dag_id=dag_id)
                if backfill["completed_at"] is None
            ]
        # It may have been made all the same: Airflow has one at a time of a DAG.
        return int(made[0]["id"] if made else self.call("POST", path, body)["id"])

    def close_backfill(self, backfill: int) -> None:
        """Mark a backfill whose runs have all ended as completed.

        Airflow does so itself only every 30 s, and takes no other backfill of the DAG before.
        """
        try:
            # "cancel" fails the runs that are still queued, of which there are none.
            self.call("PUT", f"/api/v2/backfills/{backfill}/cancel")
        except ApiError as error:
            if error.status != 409:  # completed already
                raise

    # --- tasks ------------------------------------------------------------------------------------

    def tasks(self, dag_id: str, run_id: str, state: str | None = None) -> list[TaskTry]:
        """Return a run's tasks, of one state or all, in the order they started."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}/taskInstances"
        return [
            TaskTry(run_id, task["task_id"], task["state"] or "waiting", task["try_number"], task["map_index"])
            for task in self._pages(path, "task_instances", order_by="start_date", state=state)
        ]

    def runs_with_mapped(self, dag_id: str, task_id: str, run_ids: Sequence[str]) -> set[str]:
        """Return those of the runs in which this task was mapped over one thing at least, whatever became of it."""
        ids_with_mapped: set[str] = set()
        for start in range(0, len(run_ids), PAGE):
            of_these = {
                "dag_ids": [dag_id],
                "dag_run_ids": list(run_ids[start : start + PAGE]),
                "task_ids": [task_id],
                "page_limit": PAGE,
            }
            for offset in count(0, PAGE):
                body = of_these | {"page_offset": offset}
                tasks = self.call("POST", "/api/v2/dags/~/dagRuns/~/taskInstances/list", body)["task_instances"]
                # Mapped over nothing, it is one without an index.
                ids_with_mapped |= {str(task["dag_run_id"]) for task in tasks if task["map_index"] >= 0}
                if len(tasks) < PAGE:
                    break
        return ids_with_mapped

    def result(self, dag_id: str, run_id: str, task_id: str) -> Any:
        """Return what a task of the run returned; None if nothing, or if it has not ended."""
        run = quote(run_id, safe="")
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run}/taskInstances/{task_id}/xcomEntries/return_value"
        try:
            return self.call("GET", path)["value"]
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    def open_questions(self) -> dict[str, str]:
        """Return the click hours that held_hours asks about, each with the id of the run that does, oldest first."""
        path = f"/api/v2/dags/{HELD_HOURS}/dagRuns"
        runs = self._pages(path, "dag_runs", order_by="id", state=["queued", "running"])
        return {str((run["conf"] or {}).get("hour")): str(run["dag_run_id"]) for run in runs}

    def log(self, dag_id: str, task: TaskTry) -> list[dict[str, Any] | str]:
        """Return the structured log of a task's last try."""
        run = quote(task.run_id, safe="")
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run}/taskInstances/{task.task_id}/logs/{task.try_number}"
        return list(self.call("GET", path, map_index=task.map_index, full_content="true")["content"])


def _hour_run(run: Mapping[str, Any]) -> HourRun | None:
    """The run as Airflow's API gives it; none if it says no log hours."""
    conf = run["conf"] or {}
    try:
        if conf.get("from"):
            log_hours = HourRange(Hour.parse(conf["from"]), Hour.parse(conf["to"]))
        else:
            log_hours = HourRange.single(Hour(datetime.fromisoformat(run["partition_date"])))
    except (KeyError, TypeError, UsageError):  # a form that was filled in wrongly, or not at all
        return None
    return HourRun(run["dag_run_id"], log_hours, str(conf.get("source", "all")), run["state"], run["run_type"])


def error_message(content: Sequence[Mapping[str, Any] | str]) -> str:
    """Return the first line of the last exception in Airflow's structured log, "" when there is none."""
    message = ""
    for entry in content:
        if isinstance(entry, dict) and entry.get("error_detail"):
            message = readable_log([{"event": "", "error_detail": entry["error_detail"][-1:]}])[0]
    return message


def readable_log(content: Sequence[Mapping[str, Any] | str]) -> list[str]:
    """Turn Airflow's structured log into lines: no group marks, exceptions as `Type: message`."""
    lines: list[str] = []
    for entry in content:
        if isinstance(entry, str):
            lines += entry.splitlines()
            continue
        event = str(entry.get("event", ""))
        if event.startswith(("::group::", "::endgroup::")):
            continue
        lines += event.splitlines()
        for detail in entry.get("error_detail") or ():
            # Spark appends the server's whole stack trace to a message.
            message = str(detail.get("exc_value", "")).partition("\nJVM stacktrace:")[0]
            message_lines = [line for line in message.splitlines() if not line.startswith("\tat ")] or [""]
            lines += [f"{detail.get('exc_type')}: {message_lines[0]}", *message_lines[1:MOST_MESSAGE_LINES]]
    return lines

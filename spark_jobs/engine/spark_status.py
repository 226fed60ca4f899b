"""What ran, from Spark's status REST API (https://spark.apache.org/docs/latest/monitoring.html#rest-api).

Queries, stages and tasks of what ran under a step (``spark_jobs.engine.steps``), with the times and the rows of every
task. A job never fails by it: where the API is absent, switched off or does not answer, there is nothing, and a
warning says why. Times are milliseconds, sizes bytes.
"""

from __future__ import annotations

import logging
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import uuid4

import orjson
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_jobs.engine.steps import has_mark, step, steps_of

log = logging.getLogger("clickmill")

#: How long the API may take to know the end of what has ended; it usually takes some ten milliseconds.
PATIENCE_SECONDS = 10.0
#: How often a list is asked for that is not found.
_TRIES = 3
_PAUSE_SECONDS = 0.03
#: The API gives 20 of a list by default.
_ALL = 1_000_000


@dataclass(frozen=True)
class Task:
    """One task of a stage, at its successful attempt; ``partition`` is the instance that it computed.

    ``executor`` is Spark's id of what ran it, ``driver`` where that runs tasks itself; ``host`` is where that is.
    """

    partition: int
    run_ms: int
    input_records: int
    shuffle_records_read: int
    shuffle_records_written: int
    shuffle_bytes_written: int
    executor: str
    host: str = ""


@dataclass(frozen=True)
class Stage:
    """One stage that ran, with its tasks by partition; ``job_id`` is the Spark job that ran it."""

    stage_id: int
    job_id: int
    steps: tuple[str, ...]
    tasks: tuple[Task, ...]


class _Ran(NamedTuple):
    """A stage that ran, as the API gives it without its tasks."""

    attempt: dict[str, Any]
    job_id: int
    steps: tuple[str, ...]


@dataclass(frozen=True)
class PlanNode:
    """A node of a query's plan with its metrics as Spark writes them: ``{"number of output rows": "1,234"}``."""

    node_id: int
    name: str
    metrics: dict[str, str] = field(hash=False)


@dataclass(frozen=True)
class Query:
    """One SQL execution. ``plan`` is Spark's formatted plan: the final one when adaptive execution has ended.

    ``steps`` are those of its Spark jobs, outer to inner.
    """

    description: str
    plan: str
    nodes: tuple[PlanNode, ...]
    job_ids: tuple[int, ...]
    steps: tuple[str, ...]


class SparkStatus:
    """A reader of one application's status, as one session sees it. ``problem`` says what went wrong, if anything."""

    def __init__(self, spark: SparkSession, address: str, application: str) -> None:
        self.spark, self.address, self.application = spark, address, application
        self.session_id: str | None = getattr(spark, "session_id", None)
        self.problem: str | None = None
        # No proxy: the shell's http_proxy is for the world outside. Not httpx, whose import takes 0.1 s: pyspark has
        # imported urllib already.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    @classmethod
    def of(cls, spark: SparkSession) -> SparkStatus | None:
        """The status of this session's application; None, with a warning, where there is none.

        ``CLICKMILL_SPARK_UI_URL`` is the address of Spark's UI (``http://host:4040``) where the session
        does not know it.
        """
        try:
            address, application = _address_of(spark), spark.conf.get("spark.app.id")
        except PySparkException as error:
            log.warning("no status of Spark: its settings cannot be read: %s", str(error).splitlines()[0])
            return None
        if address is None:
            log.warning(
                "no status of Spark: its UI is switched off (spark.ui.enabled, spark.ui.port); "
                "switch it on, or set CLICKMILL_SPARK_UI_URL to its address, such as http://localhost:4040"
            )
            return None
        status = cls(spark, address, application or "")
        known = status._get("applications")
        if known is None:
            return None
        ids = [str(entry["id"]) for entry in known]
        if status.application not in ids:
            log.warning("no status of Spark: %s has the applications %s; expected %s", address, ids, application)
            return None
        return status

    def catch_up(self) -> bool:
        """Wait until the API knows all that this session has run so far; whether it does.

        Spark reports jobs to its API in the order in which they run, a little later: when a job of our own that is run
        now has ended there, all before it have.
        """
        mark = f"catch_up {uuid4().hex}"
        with step(self.spark, mark):
            self.spark.range(0, 1, 1, 1).collect()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            jobs = self._jobs(mark)
            if self.problem is not None:
                return False
            if jobs and all(job["status"] != "RUNNING" for job in jobs):
                return True
            time.sleep(_PAUSE_SECONDS)
        self._warn(f"{self.address} has not heard of what ran within {PATIENCE_SECONDS:.0f} s")
        return False

    def stages(self, name: str) -> list[Stage]:
        """The stages that ran under this step, in the order in which they were made, with their tasks.

        Stages whose result was there already (a shuffle computed before) did not run, and are left out.
        """
        self.catch_up()
        return self._stages_of(self._jobs(name))

    def stages_that_read(self, records: Mapping[str, Sequence[int]], *, gives_on: bool) -> dict[str, Stage]:
        """For each mark, under which something has run, the newest stage whose tasks read so many records.

        By partition, exactly as many from a shuffle, or at least as many from files. If it ``gives_on`` what it
        computes, rather one that does: with one task, what writes the rows into a table reads as many. Only what may be
        that stage is asked for, as each request takes its milliseconds.
        """
        stage_of_mark = {
            mark: self._stage_that_read(jobs, records[mark], gives_on)
            for mark, jobs in self._marked_jobs(records).items()
        }
        return {mark: stage for mark, stage in stage_of_mark.items() if stage is not None}

    def _marked_jobs(self, marks: Collection[str]) -> dict[str, list[dict[str, Any]]]:
        """The Spark jobs that ran under each of these marks, when they have ended there too."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            jobs = self._get("jobs") or ()
            jobs_of_mark = {mark: [job for job in jobs if has_mark(job["jobTags"], mark)] for mark in marks}
            ended = all(
                of_mark and all(job["status"] != "RUNNING" for job in of_mark) for of_mark in jobs_of_mark.values()
            )
            if ended or self.problem is not None or time.monotonic() > deadline:
                return jobs_of_mark
            time.sleep(_PAUSE_SECONDS)

    def _stage_that_read(self, jobs: Iterable[dict[str, Any]], records: Sequence[int], gives_on: bool) -> Stage | None:
        last = None
        for ran in self._ran(jobs, newest_first=True):
            counts = ran.attempt
            may_be = counts["shuffleReadRecords"] == sum(records) or counts["inputRecords"] >= sum(records)
            if counts["numTasks"] == len(records) and may_be:
                stage = self._stage(ran)
                pairs = list(zip(stage.tasks, records, strict=False))
                if len(stage.tasks) == len(records) and (
                    all(task.shuffle_records_read == number for task, number in pairs)
                    or all(task.input_records >= number for task, number in pairs)
                ):
                    if not gives_on or any(task.shuffle_records_written for task in stage.tasks):
                        return stage
                    last = last or stage
        return last

    def _stages_of(self, jobs: Iterable[dict[str, Any]]) -> list[Stage]:
        return [self._stage(ran) for ran in self._ran(jobs)]

    def _ran(self, jobs: Iterable[dict[str, Any]], *, newest_first: bool = False) -> Iterator[_Ran]:
        """The stages of these jobs that ran to their end, each asked for when it is come to."""
        for job in sorted(jobs, key=lambda job: int(job["jobId"]), reverse=newest_first):
            steps = steps_of(job["jobTags"], self.session_id)
            for stage_id in sorted(job["stageIds"], reverse=newest_first):
                for attempt in self._get(f"stages/{stage_id}", details="false", absent_is_none=True) or ():
                    if attempt["status"] == "COMPLETE":
                        yield _Ran(attempt, int(job["jobId"]), steps)

    def queries(self, name: str) -> list[Query]:
        """The SQL executions that ran Spark jobs under this step, oldest first, with their final plans."""
        self.catch_up()
        jobs = {int(job["jobId"]): steps_of(job["jobTags"], self.session_id) for job in self._jobs(name)}
        ids = sorted(self._executions_of(set(jobs)))
        queries = (self._query(query_id, jobs) for query_id in ids)
        return [query for query in queries if query is not None]

    def _stage(self, ran: _Ran) -> Stage:
        stage_id, number = int(ran.attempt["stageId"]), int(ran.attempt["attemptId"])
        tasks = self._get(f"stages/{stage_id}/{number}/taskList", length=_ALL) or ()
        of_partition = sorted(map(_task, _successful(tasks)), key=lambda task: task.partition)
        return Stage(stage_id, ran.job_id, ran.steps, tuple(of_partition))

    def _jobs(self, name: str) -> list[dict[str, Any]]:
        jobs = self._get("jobs") or ()
        return [job for job in jobs if name in steps_of(job["jobTags"], self.session_id)]

    def _executions_of(self, jobs: set[int]) -> set[int]:
        """The ids of the SQL executions that these Spark jobs belong to.

        Spark gives the jobs of an execution, not the execution of a job. Its list of all is quick without their plans.
        """
        executions = self._get("sql", details="false", planDescription="false", offset=0, length=_ALL) or ()
        return {int(execution["id"]) for execution in executions if jobs & _job_ids(execution)}

    def _query(self, query_id: int, jobs: dict[int, tuple[str, ...]]) -> Query | None:
        """The execution, when its end and its metrics have arrived; as it is when that takes too long."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            answer = self._get(f"sql/{query_id}", details="true", planDescription="true", absent_is_none=True)
            if answer is None:
                return None
            if answer["status"] != "RUNNING" or time.monotonic() > deadline:
                break
            time.sleep(_PAUSE_SECONDS)
        job_ids = tuple(sorted(_job_ids(answer)))
        return Query(
            description=str(answer["description"]),
            plan=str(answer["planDescription"]),
            nodes=tuple(
                PlanNode(int(node["nodeId"]), str(node["nodeName"]), {m["name"]: m["value"] for m in node["metrics"]})
                for node in answer["nodes"]
            ),
            job_ids=job_ids,
            steps=next((jobs[job] for job in job_ids if job in jobs), ()),
        )

    def _get(self, path: str, *, absent_is_none: bool = False, **parameters: object) -> Any:
        """The answer to a request; None, with a warning, when there is none."""
        root = f"{self.address}/api/v1/"
        if path != "applications":
            path = f"applications/{urllib.parse.quote(self.application)}/{path}"
        url = root + path + ("?" + urllib.parse.urlencode(parameters) if parameters else "")
        for tries_left in reversed(range(_TRIES)):
            try:
                with self._opener.open(url, timeout=PATIENCE_SECONDS) as answer:
                    return orjson.loads(answer.read())
            except urllib.error.HTTPError as error:
                if error.code == 404 and absent_is_none:
                    return None
                # Spark answers so too when it forgets one of its oldest queries while it lists them.
                if error.code != 404 or not tries_left:
                    self._warn(f"{url} answers {error.code}")
                    return None
            except (OSError, ValueError) as error:
                self._warn(f"{url} does not answer as Spark's REST API does ({error})")
                return None
        return None

    def _warn(self, problem: str) -> None:
        if self.problem is None:
            log.warning("no status of Spark: %s", problem)
        self.problem = problem


def _address_of(spark: SparkSession) -> str | None:
    address = os.environ.get("CLICKMILL_SPARK_UI_URL")
    if address:
        return address.rstrip("/")
    port = spark.conf.get("spark.ui.port", "")
    if spark.conf.get("spark.ui.enabled", "true") == "false" or not port or port == "0":
        return None
    host = spark.conf.get("spark.driver.host", "") or "127.0.0.1"
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _job_ids(execution: dict[str, Any]) -> set[int]:
    return {int(job) for kind in ("successJobIds", "failedJobIds", "runningJobIds") for job in execution.get(kind, ())}


def _successful(tasks: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """One attempt a partition: a speculative or failed one did the same work again."""
    seen: set[int] = set()
    for task in tasks:
        if task["status"] == "SUCCESS" and "taskMetrics" in task and task["partitionId"] not in seen:
            seen.add(task["partitionId"])
            yield task


def _task(task: dict[str, Any]) -> Task:
    metrics = task["taskMetrics"]
    read, written = metrics["shuffleReadMetrics"], metrics["shuffleWriteMetrics"]
    return Task(
        partition=int(task["partitionId"]),
        run_ms=int(metrics["executorRunTime"]),
        input_records=int(metrics["inputMetrics"]["recordsRead"]),
        shuffle_records_read=int(read["recordsRead"]),
        shuffle_records_written=int(written["recordsWritten"]),
        shuffle_bytes_written=int(written["bytesWritten"]),
        executor=str(task["executorId"]),
        host=str(task.get("host", "")),
    )

"""Jobs run, and what Spark really ran of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from uuid import uuid4

from pyspark.sql import SparkSession

from include.errors import ClickmillError
from include.job_arguments import JobArguments
from include.settings import Settings
from spark_jobs.engine.spark_status import SparkStatus, Stage
from spark_jobs.engine.steps import SEPARATOR, step
from spark_jobs.topology.model import JobTopology, QueryTopology
from spark_jobs.topology.plan import read_plan
from spark_jobs.topology.read_plan import RanStage, is_internal, read_query

#: A job over log hours.
Job = Callable[[SparkSession, Settings, JobArguments], object]
_SINKS = {"write ": "table ", "append to ": "table ", "stage ": "staged "}


def explain(
    spark: SparkSession, settings: Settings, arguments: JobArguments, jobs: Mapping[str, Job]
) -> list[JobTopology]:
    """Run the jobs, one after the other, and give the topology of each.

    Raises:
        ClickmillError: if a job fails, or Spark's status API does not say what ran.
    """
    status = SparkStatus.of(spark)
    if status is None:
        raise ClickmillError("Spark's status API is not there (see the warning above); the topology is read from it")
    topologies = []
    for job, run in jobs.items():
        run_id = f"{job} {uuid4().hex[:12]}"
        with step(spark, run_id):
            run(spark, settings, arguments)
        topologies.append(JobTopology(job, tuple(topologies_under(run_id, status, settings))))
    return topologies


def topologies_under(name: str, status: SparkStatus, settings: Settings) -> list[QueryTopology]:
    """The topology of each query that ran under this step, named by the steps inside it.

    Raises:
        ClickmillError: if Spark's status API stopped answering.
    """
    queries, stages = status.queries(name), status.stages(name)
    if status.problem is not None:
        raise ClickmillError(f"{name} has run, but not all of its topology is known: {status.problem}")
    topologies = []
    for query in queries:
        nodes = sorted(query.nodes, key=lambda node: node.node_id)
        plan = read_plan(query.plan, [(node.name, node.metrics) for node in nodes])
        if query.description.startswith("Delta: ") or is_internal(plan):
            continue
        inner = query.steps[query.steps.index(name) + 1 :]
        ran = [
            RanStage(
                stage.stage_id,
                len(stage.tasks),
                sum(task.shuffle_records_written for task in stage.tasks),
                sum(task.shuffle_bytes_written for task in stage.tasks),
                _executors(stage),
            )
            for stage in stages
            if stage.job_id in query.job_ids
        ]
        initial = read_plan(query.plan, initial=True)
        named = partial(_named, settings)
        words = SEPARATOR.join(inner) or "a query without a step"
        topologies.append(read_query(words, plan, _sink(query.steps[-1]), ran, named, initial))
    return topologies


def _executors(stage: Stage) -> tuple[str, ...]:
    """Where each task ran, by partition; nothing without executors, or for what the API left out."""
    if any(task.executor == "driver" for task in stage.tasks):
        return ()
    return tuple(
        f"executor {task.executor} on {task.host.partition(':')[0]}"
        for task in sorted(stage.tasks, key=lambda task: task.partition)
    )


def _sink(step_name: str) -> str:
    """What the step's rows go to: Spark's plan of a write to Delta does not say."""
    for words, sink in _SINKS.items():
        if step_name.startswith(words):
            return sink + step_name.removeprefix(words)
    return "the job"


def _named(settings: Settings, path: str) -> str:
    """``table clicks``, ``staged parsed lines`` or ``landing web`` of a path of this home."""
    for folder, kind in (settings.lake, "table"), (settings.landing, "landing"), (settings.scratch, "staged"):
        if path.startswith(f"{folder}/"):
            name = path.removeprefix(f"{folder}/").partition("/")[0]
            return f"{kind} {name}" if kind != "staged" else " ".join(name.split("-")[:-5])
    return path

"""Run jobs on these log hours, and explain what Spark really ran: sub-topologies, shuffles, tasks and where they fall.

The jobs are the pipeline's own, and run as they always do: running them again gives the same tables. What is explained
is Spark's final plan of each of their queries, under the name that the job gives it, with the rows and bytes that
crossed each shuffle. Delta's own small queries, on its logs, are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from uuid import uuid4

import orjson
from pyspark.sql import SparkSession

from include.command import exit_with
from include.errors import ClickmillError
from include.job_arguments import JobArguments, job_parser
from include.pages.render import write_page
from include.settings import Settings
from include.sources import choose_sources
from spark_jobs.engine.session import spark_session
from spark_jobs.engine.spark_status import SparkStatus, Stage
from spark_jobs.engine.steps import SEPARATOR, step
from spark_jobs.topology.model import JobTopology, QueryTopology, as_json, describe
from spark_jobs.topology.plan import read_plan
from spark_jobs.topology.read_plan import RanStage, is_internal, read_query
from spark_jobs.topology.task_assignment import assign, worker_names
from spark_jobs.topology.topology_page import render_topology

JOBS = ("ingest_clicks", "aggregate_clicks", "validate_clicks", "publish_clicks")
_SINKS = {"write ": "table ", "append to ": "table ", "stage ": "staged "}


def explain(spark: SparkSession, settings: Settings, arguments: JobArguments, jobs: Sequence[str]) -> list[JobTopology]:
    """Run the jobs, one after the other, and give the topology of each.

    Raises:
        ClickmillError: if a job fails, or Spark's status API does not say what ran.
    """
    status = SparkStatus.of(spark)
    if status is None:
        raise ClickmillError("Spark's status API is not there (see the warning above); the topology is read from it")
    topologies = []
    for job in jobs:
        run_id = f"{job} {uuid4().hex[:12]}"
        with step(spark, run_id):
            import_module(f"spark_jobs.{job}").run(spark, settings, arguments)
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
    found = []
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
        found.append(read_query(words, plan, _sink(query.steps[-1]), ran, named, initial))
    return found


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
    for words, what in _SINKS.items():
        if step_name.startswith(words):
            return what + step_name.removeprefix(words)
    return "the job"


def _named(settings: Settings, path: str) -> str:
    """``table clicks``, ``staged parsed lines`` or ``landing web`` of a path of this home."""
    for folder, what in (settings.lake, "table"), (settings.landing, "landing"), (settings.scratch, "staged"):
        if path.startswith(f"{folder}/"):
            name = path.removeprefix(f"{folder}/").partition("/")[0]
            return f"{what} {name}" if what != "staged" else " ".join(name.split("-")[:-5])
    return path


def main() -> None:
    """The job from a shell."""
    parser = job_parser("spark_jobs.explain_topology", __doc__)
    parser.add_argument("jobs", nargs="+", choices=JOBS, metavar="JOB", help=f"of: {', '.join(JOBS)}")
    parser.add_argument(
        "--workers", type=int, default=2, metavar="N", help="workers that the tasks fall on; default: 2"
    )
    parser.add_argument("--cores", type=int, default=2, metavar="N", help="cores of each worker; default: 2")
    parser.add_argument("--json", action="store_true", help="print JSON in place of text")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with pictures too")
    given = parser.parse_args()
    arguments = JobArguments.of(given.source, given.start, given.end, given.hour)
    assign((), worker_names(given.workers), given.cores)
    settings = Settings.from_environment()
    choose_sources(settings, arguments.source)
    with spark_session(settings) as spark:
        topologies = explain(spark, settings, arguments, given.jobs)
    if given.json:
        documents = [as_json(topology, given.workers, given.cores) for topology in topologies]
        print(orjson.dumps(documents, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode())
    else:
        print(*(describe(topology, workers=given.workers, cores=given.cores) for topology in topologies), sep="\n")
    if given.html:
        page = render_topology(topologies, f"log hours {arguments.log_hours}", given.workers, given.cores)
        write_page(page, given.html)


if __name__ == "__main__":
    exit_with(main)

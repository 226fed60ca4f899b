"""Run jobs on these log hours, and explain what Spark really ran: sub-topologies, shuffles, tasks and where they fall.

The jobs are the pipeline's own, and run as they always do: running them again gives the same tables. What is explained
is Spark's final plan of each of their queries, under the name that the job gives it, with the rows and bytes that
crossed each shuffle. Delta's own small queries, on its logs, are left out.
"""

from __future__ import annotations

from pathlib import Path

import orjson

from include.command import exit_with
from include.documents.page import render_document
from include.job_arguments import JobArguments, job_parser
from include.pages.render import write_page
from include.settings import Settings
from include.sources import choose_sources
from spark_jobs.aggregate.job import aggregate
from spark_jobs.engine.session import spark_session
from spark_jobs.ingest.job import ingest
from spark_jobs.publish.job import publish
from spark_jobs.quality.job import require_valid
from spark_jobs.topology.job import Job, explain
from spark_jobs.topology.model import as_json, describe
from spark_jobs.topology.task_assignment import assign, worker_names
from spark_jobs.topology.topology_page import topology_document

JOBS: dict[str, Job] = {
    "ingest_clicks": ingest,
    "aggregate_clicks": aggregate,
    "validate_clicks": require_valid,
    "publish_clicks": publish,
}


def main() -> None:
    """The job from a shell."""
    parser = job_parser("spark_jobs.explain_topology", __doc__)
    parser.add_argument("jobs", nargs="+", choices=list(JOBS), metavar="JOB", help=f"of: {', '.join(JOBS)}")
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
        topologies = explain(spark, settings, arguments, {job: JOBS[job] for job in given.jobs})
    if given.json:
        documents = [as_json(topology, given.workers, given.cores) for topology in topologies]
        print(orjson.dumps(documents, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode())
    else:
        print(*(describe(topology, workers=given.workers, cores=given.cores) for topology in topologies), sep="\n")
    if given.html:
        document = topology_document(topologies, f"log hours {arguments.log_hours}", given.workers, given.cores)
        write_page(render_document(document), given.html)


if __name__ == "__main__":
    exit_with(main)

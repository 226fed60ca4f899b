"""Check what was ingested and aggregated for the given log hours; exit with 3 when a critical check does not hold.

The click hours that such a failure touches are held: publish_clicks leaves them at their last good version.

Two Spark actions, at the same time, measure all that the expectations look at; Great Expectations judges the small
frames that come of them. Every outcome is appended to quality_results, with examples of the rows that failed, and each
run writes Data Docs under reports/data_docs/. Results and pages that are older than config/pipeline.toml says are
removed.
"""

from __future__ import annotations

import orjson
from rich.console import Console

from include.command import exit_with
from include.documents.terminal import print_document
from include.errors import QualityError
from include.job_arguments import JobArguments, job_parser
from include.settings import Settings
from include.sources import choose_sources
from spark_jobs.engine.session import spark_session
from spark_jobs.quality.job import validate
from spark_jobs.quality.summary import as_json, validation_document


def main() -> None:
    """The job from a shell: a summary in the terminal, or JSON.

    Raises:
        QualityError: if a critical expectation does not hold.
    """
    parser = job_parser("spark_jobs.validate_clicks", __doc__)
    parser.add_argument("--json", action="store_true", help="print JSON in place of text")
    given = parser.parse_args()
    arguments = JobArguments.of(given.source, given.start, given.end, given.hour)
    settings = Settings.from_environment()
    choose_sources(settings, arguments.source)
    _ = settings.pipeline
    with spark_session(settings) as spark:
        validation = validate(spark, settings, arguments)
    if given.json:
        print(orjson.dumps(as_json(validation), option=orjson.OPT_INDENT_2).decode())
    else:
        print_document(Console(), validation_document(validation))
    if validation.critical_failures:
        number = len(validation.critical_failures)
        raise QualityError(f"{number} critical check failures, as shown; the hours are not published")


if __name__ == "__main__":
    exit_with(main)

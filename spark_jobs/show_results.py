"""Show the busiest URLs and countries, where the lines went, and the quality verdict."""

from __future__ import annotations

from rich.console import Console

from include.job_arguments import OneLineParser, exit_with
from include.settings import Settings
from spark_jobs.engine.session import spark_session
from spark_jobs.lake.lake import Lake
from spark_jobs.publish.report_data import read_report_data
from spark_jobs.publish.shown_results import print_results


def main() -> None:
    """The job from a shell."""
    OneLineParser(prog="python -m spark_jobs.show_results", description=__doc__).parse_args()
    settings = Settings.from_environment()
    with spark_session(settings) as spark:
        print_results(Console(), read_report_data(Lake(spark, settings), settings), settings.reports / "report.html")


if __name__ == "__main__":
    exit_with(main)

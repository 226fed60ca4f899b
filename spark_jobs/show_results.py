"""Show the busiest URLs and countries, where the lines went, and the quality verdict; or clicks by period.

Without --grain: the newest published hours, as many as the report shows. With it: the newest 31 hours, days, weeks or
months that have published clicks, and the busiest URLs and countries of the last. Weeks are those of ISO 8601.
Visitors of a period are united from its days: who comes again is one visitor.
"""

from __future__ import annotations

from rich.console import Console

from include.command import described_parser, exit_with
from include.days import GRAINS
from include.documents.terminal import print_document, print_line
from include.errors import UsageError
from include.settings import Settings
from spark_jobs.engine.session import spark_session
from spark_jobs.lake.lake import Lake
from spark_jobs.publish.periods import read_periods, require_counted
from spark_jobs.publish.report_data import read_report_data
from spark_jobs.publish.shown_periods import periods_document
from spark_jobs.publish.shown_results import results_document


def main() -> None:
    """The job from a shell.

    Raises:
        UsageError: if days of the time zone are not counted, or it is given without a grain.
    """
    parser = described_parser("spark_jobs.show_results", __doc__)
    parser.add_argument("--grain", choices=GRAINS, help="show clicks by such periods")
    parser.add_argument(
        "--time-zone", metavar="ZONE", help="whose days: one of time_zones in config/pipeline.toml; default: the first"
    )
    given = parser.parse_args()
    settings = Settings.from_environment()
    if given.time_zone and not given.grain:
        raise UsageError(f"--time-zone {given.time_zone} without --grain: expected --grain hour, day, week or month")
    time_zone = require_counted(settings, given.time_zone)
    with spark_session(settings) as spark:
        lake = Lake(spark, settings)
        if given.grain:
            print_document(Console(), periods_document(read_periods(lake, given.grain, time_zone)))
        else:
            print_document(Console(), results_document(read_report_data(lake, settings)))
            print_line(Console(), f"Report: {settings.report}")


if __name__ == "__main__":
    exit_with(main)

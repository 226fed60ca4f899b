"""Release daily clicks per country and URL, and per country, with noise: for readers who get nothing else.

As [publication.noise] of config/pipeline.toml says. A day is released when all its hours are there and published, and
its late clicks have had time to come. What was drawn is on record, in count_releases: again the same day gives the same
rows while its counts before noise are the same. If they have changed, noise is drawn again only while the day's budget
lasts; else the earlier release stays.
"""

from __future__ import annotations

import argparse
from datetime import date

from include.command import described_parser, exit_with
from include.settings import Settings
from spark_jobs.engine.session import spark_session
from spark_jobs.publish.release_counts import release, require_noise


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}; expected a day, UTC, such as 2026-03-02") from None


def main() -> None:
    """The job from a shell."""
    parser = described_parser(
        "spark_jobs.release_counts",
        __doc__,
        "days are UTC; --to itself is not included. exit codes: 0 done, 1 failed, 2 wrong arguments or configuration",
    )
    parser.add_argument("--from", dest="first", required=True, type=_day, metavar="DAY", help="such as 2026-03-01")
    parser.add_argument("--to", dest="end", required=True, type=_day, metavar="DAY", help="the day after the last one")
    parser.add_argument("--dry-run", action="store_true", help="say what would be released; draw nothing")
    given = parser.parse_args()
    settings = Settings.from_environment()
    require_noise(settings)
    with spark_session(settings) as spark:
        print(*release(spark, settings, given.first, given.end, dry_run=given.dry_run), sep="\n")


if __name__ == "__main__":
    exit_with(main)

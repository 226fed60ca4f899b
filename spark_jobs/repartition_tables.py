"""Give all co-partitioned tables a new number of buckets, together.

Each table changes in one commit. If this is killed in between, some tables have the
new number and some the old one: the jobs that need them equal say so and refuse, and running this again finishes.
Counts stay as they are; older versions of the tables can be read as before.
"""

from __future__ import annotations

import argparse

from include.buckets import MAX_BUCKETS
from include.command import OneLineParser, exit_with
from include.settings import Settings
from spark_jobs.aggregate.repartition import repartition
from spark_jobs.engine.session import spark_session


def _number_of_buckets(text: str) -> int:
    if text.isascii() and text.isdecimal() and 1 <= int(text) <= MAX_BUCKETS:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r}; expected a whole number from 1 to {MAX_BUCKETS}")


def main() -> None:
    """The job from a shell."""
    parser = OneLineParser(prog="python -m spark_jobs.repartition_tables", description=__doc__)
    parser.add_argument(
        "--buckets", required=True, type=_number_of_buckets, metavar="N", help=f"their number, 1 to {MAX_BUCKETS}"
    )
    given = parser.parse_args()
    settings = Settings.from_environment()
    with spark_session(settings) as spark:
        print(*repartition(spark, settings, given.buckets), sep="\n")


if __name__ == "__main__":
    exit_with(main)

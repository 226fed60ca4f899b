"""Ingest landed log hours: accepted clicks, quarantined lines, and an account of every line.

The log hours of a streamed source are in the lake already: they are only accounted for.
Replaces exactly the log hours' partitions of clicks, duplicate_clicks, quarantined_clicks and ingest_accounting, so
that running it again gives the same tables; and those of later log hours in which clicks become duplicates by that, or
the reverse. While it writes, unfinished_ingests names the log hours; if it is killed, run it again.
"""

from __future__ import annotations

from include.command import OneLineParser, exit_with
from spark_jobs.engine.command import run_from_shell
from spark_jobs.ingest.job import ingest


def _add_options(parser: OneLineParser) -> None:
    parser.add_argument("--allow-missing", action="store_true", help="count a log hour that never landed as empty")


if __name__ == "__main__":
    exit_with(lambda: run_from_shell("spark_jobs.ingest_clicks", __doc__, ingest, _add_options))

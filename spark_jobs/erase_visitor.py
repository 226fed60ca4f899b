"""Erase visitors from everything that Clickmill keeps, and leave a certificate that names nobody.

Finds the clicks of a visitor, of a client address, or with a URL that begins so: in landed files, tables, exports and
pages. Lines and rows go; their hours are counted, validated and published again; former versions of the tables go too,
so that an earlier backfill cannot be undone any more. It cannot be undone itself: first it says what would go, and asks
on a terminal; with --yes it does not ask. In the end all files are searched. Killed, it is finished by the
same arguments again. The certificate is in reports/erasures/, the act in the table audit.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from include.command import described_parser, exit_with
from include.errors import FinalError, UsageError
from include.job_arguments import add_signature
from include.settings import Settings
from spark_jobs.engine.session import spark_session
from spark_jobs.erasure.erase import Plan, erase, plan
from spark_jobs.erasure.requests import KINDS, Requests

#: What a person types to be sure.
SURE = "erase"


@dataclass(frozen=True)
class _Given:
    requests: Requests
    by: str
    because: str
    is_dry_run: bool
    is_sure: bool


def run(
    spark: SparkSession,
    settings: Settings,
    requests: Requests,
    by: str,
    because: str,
    *,
    dry_run: bool = False,
    shown: Plan | None = None,
) -> list[str]:
    """Erase what is asked for, or with ``dry_run`` say how much there is; see ``spark_jobs.erasure.erase``."""
    if dry_run:
        return plan(spark, settings, requests, by, because).lines
    return erase(spark, settings, requests, by, because, shown=shown)


def _parse(argv: Sequence[str] | None = None) -> _Given:
    parser = described_parser(
        "spark_jobs.erase_visitor",
        __doc__,
        "exit codes: 0 done, 1 failed, nothing found or not complete, 2 wrong arguments",
    )
    parser.add_argument("--visitor", nargs="+", default=[], metavar="ID", help="visitor_id in the table clicks")
    parser.add_argument("--address", nargs="+", default=[], metavar="IP", help="a client's address")
    parser.add_argument(
        "--url-prefix", nargs="+", default=[], metavar="URL", help="the beginning of URLs in the table clicks"
    )
    parser.add_argument("--requests", type=Path, metavar="FILE", help="a request a line, JSON or TOML; not seen by ps")
    parser.add_argument("--dry-run", action="store_true", help="say how much would be erased, and change nothing")
    parser.add_argument("--yes", action="store_true", help="erase without asking")
    add_signature(parser)
    given = parser.parse_args(argv)
    asked: dict[str, list[str]] = {kind: list(getattr(given, kind)) for kind in KINDS}
    for kind, value in Requests.read(given.requests) if given.requests else ():
        asked[kind].append(value)
    return _Given(Requests.of(*(asked[kind] for kind in KINDS)), given.by, given.because, given.dry_run, given.yes)


def main() -> None:
    """The job from a shell."""
    given = _parse()
    settings = Settings.from_environment()
    _ = settings.pipeline
    asks = not (given.is_dry_run or given.is_sure)
    if asks and not sys.stdin.isatty():
        raise UsageError("nothing is erased: expected --yes, as it cannot be undone; --dry-run says what would go")
    with spark_session(settings) as spark:
        shown = plan(spark, settings, given.requests, given.by, given.because) if asks else None
        if shown:
            print(*shown.lines, sep="\n")
            if input(f"to erase it for good, type {SURE}: ").strip() != SURE:
                raise FinalError("nothing is erased: it was not confirmed")
        done = run(spark, settings, given.requests, given.by, given.because, dry_run=given.is_dry_run, shown=shown)
        print(*done, sep="\n")


if __name__ == "__main__":
    exit_with(main)

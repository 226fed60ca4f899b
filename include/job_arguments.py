"""The arguments that every job takes, from a shell or from a DAG."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from include.command import OneLineParser, described_parser
from include.errors import UsageError
from include.log_hours import Hour, HourRange

LOG_HOURS_EPILOG = """hours are UTC; --from and --to are half-open: --to itself is not included.
exit codes: 0 done, 1 failed, 2 wrong arguments or configuration, 3 a critical quality check failed"""


@dataclass(frozen=True)
class JobArguments:
    """Which source (``all``: every scheduled one) and which log hours a job is to work on."""

    source: str
    log_hours: HourRange

    @classmethod
    def of(cls, source: str, start: str | None, end: str | None, hour: str | None = None) -> JobArguments:
        """From texts such as ``2026-03-01T05``: either ``hour``, or ``start`` and ``end``.

        Raises:
            UsageError: if they name no range of hours.
        """
        if hour and not (start or end):
            return cls(source, HourRange.single(Hour.parse(hour)))
        if start and end and not hour:
            return cls(source, HourRange(Hour.parse(start), Hour.parse(end)))
        raise UsageError("no hours given: expected either --hour, or both --from and --to, such as 2026-03-01T05")


def job_parser(module: str, description: str | None) -> OneLineParser:
    """A parser with the arguments that all jobs over log hours share."""
    parser = described_parser(module, description, LOG_HOURS_EPILOG)
    parser.add_argument("--source", default="all", help="a source of config/sources.toml; default: all scheduled ones")
    parser.add_argument("--from", dest="start", metavar="HOUR", help="first log hour, such as 2026-03-01T05")
    parser.add_argument("--to", dest="end", metavar="HOUR", help="the log hour after the last one")
    parser.add_argument("--hour", metavar="HOUR", help="one log hour, instead of --from and --to")
    return parser


def add_signature(parser: argparse.ArgumentParser) -> None:
    """Add who decides, and why, as ``require_signed`` wants them."""
    parser.add_argument("--by", required=True, metavar="NAME", help="who decides")
    parser.add_argument("--because", required=True, metavar="TEXT", help="why")


def require_signed(by: str, because: str) -> None:
    """Whoever decides must be named, and a reason given.

    Raises:
        UsageError: if not.
    """
    for name, text in (("by", by), ("because", because)):
        if not text.strip():
            raise UsageError(f"no {name} given: expected who decides and why, as it is kept on record")


def arguments_of_run(params: Mapping[str, Any], partition_key: str | None) -> JobArguments:
    """The form's ``from`` and ``to`` where they are given, else the run's own partition.

    Raises:
        UsageError: if neither is there.
    """
    start, end = params.get("from"), params.get("to")
    if start or end:
        return JobArguments.of(params["source"], start, end)
    if partition_key:
        return JobArguments.of(params["source"], None, None, hour=partition_key)
    raise UsageError("this run has no partition: fill in from and to when you trigger it by hand")

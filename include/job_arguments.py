"""The arguments that every job takes, from a shell or from a DAG."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from include.errors import ClickmillError, UsageError
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


class OneLineParser(argparse.ArgumentParser):
    """Says in one line what is wrong with the arguments, and exits with 2."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """Print the one line and exit."""
        self.exit(2, f"{self.prog}: {message}; see --help\n")


def job_parser(module: str, description: str | None) -> OneLineParser:
    """A parser with the arguments that all jobs over log hours share."""
    parser = OneLineParser(
        prog=f"python -m {module}",
        description=description,
        epilog=LOG_HOURS_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
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


def exit_with(main: Callable[[], None]) -> None:
    """Run a job's main; an error that a person can act on is one line, not a stack trace."""
    try:
        main()
    except ClickmillError as error:
        print(f"{'wrong arguments' if isinstance(error, UsageError) else 'failed'}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


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

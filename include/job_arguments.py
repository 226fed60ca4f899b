"""The arguments that every job takes, from a shell or from a DAG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from include.errors import UsageError
from include.hours import Hour, HourRange


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

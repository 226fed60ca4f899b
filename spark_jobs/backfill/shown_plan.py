"""A plan as lines of text, for a task's log, and as a table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from include.documents.model import Column, Document, Table
from include.documents.terminal import print_document, print_line
from include.hours import Hour, contiguous
from include.texts import as_size
from spark_jobs.backfill.plan import Plan

#: Of many ranges, so many are named.
MOST_RANGES = 4


def plan_rows(plan: Plan) -> list[tuple[str, str]]:
    """What there is to know, each with its name."""
    request = plan.request
    begins = "goes on with " + plan.resumed.id if plan.resumed else "is new"
    return [
        ("backfill", f"{request.source} {request.log_hours}, {_staged(plan)}; {begins}"),
        ("log hours landed", f"{_hours(plan.landed)}, {as_size(plan.size_bytes)} to run"),
        ("  never ingested", _hours(plan.never_ingested)),
        ("  landed again since", _hours(plan.landed_again)),
        ("log hours ingested", _hours(plan.ingested)),
        ("log hours left out", f"{_hours(plan.missing)}{' that never landed' if plan.missing else ''}"),
        ("click hours published", _hours(plan.published)),
        ("click hours held", _hours(plan.held)),
        ("click hours outside", f"{_hours(plan.outside)}{' that late clicks change' if plan.outside else ''}"),
        ("chunks to run", f"{len(plan.chunks)} of at most {request.chunk_hours} log hours"),
        ("estimated time", _estimate(plan)),
        ("undo", f"possible for {plan.undo_days:.0f} days once published, unless somebody runs VACUUM"),
        *(("blocked", reason) for reason in plan.blocks),
    ]


def plan_lines(plan: Plan) -> list[str]:
    """A line for each of ``plan_rows``."""
    return [f"{name}: {text}" for name, text in plan_rows(plan)]


def print_plan(plan: Plan, console: Console) -> None:
    """The plan as a table; as lines where no person looks on."""
    if not console.is_terminal:
        for line in plan_lines(plan):
            print_line(console, line)
        return
    print_document(
        console, Document((Table("Plan", (Column("", "name"), Column("", "text")), tuple(plan_rows(plan))),))
    )


def _staged(plan: Plan) -> str:
    return "staged: published when a person approves" if plan.request.is_staged else "published chunk by chunk"


def _estimate(plan: Plan) -> str:
    if plan.seconds is None:
        return "unknown: no chunk has been measured yet"
    chunks = f"{plan.measured_chunks} chunk{'' if plan.measured_chunks == 1 else 's'}"
    return f"{as_duration(plan.seconds)}, as {chunks} took before"


def as_duration(seconds: float) -> str:
    """``40 s``, ``5 min``, ``2.5 h``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _hours(hours: Sequence[Hour]) -> str:
    if not hours:
        return "none"
    ranges = contiguous(hours)
    listed = ", ".join(map(str, ranges[:MOST_RANGES])) + (", …" if len(ranges) > MOST_RANGES else "")
    return f"{len(hours):,} ({listed})"

"""The comparison of a staged backfill as a page and as JSON: ``reports/backfills/<id>.html`` and ``.json``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import orjson

from include.backfills import Backfill
from include.log_hours import Hour, as_ranges
from include.pages.render import render_page, write_page
from include.settings import Settings
from spark_jobs.backfill.compare import Comparison, compare
from spark_jobs.lake.lake import Lake

_TEMPLATES = Path(__file__).resolve().parent / "templates"
#: More hours than these are folded away.
MOST_OPEN_HOURS = 48


def write_comparison(lake: Lake, settings: Settings, backfill: Backfill) -> tuple[Backfill, Comparison, Path]:
    """Compare, and write page and JSON; returns the page too."""
    backfill, comparison = compare(lake, backfill)
    page = settings.reports / "backfills" / f"{backfill.id}.html"
    write_page(as_json(backfill, comparison), page.with_suffix(".json"))
    return backfill, comparison, write_page(render_comparison(backfill, comparison), page)


def render_comparison(backfill: Backfill, comparison: Comparison) -> str:
    """The same comparison gives the same page."""
    return render_page(
        _TEMPLATES / "comparison.html",
        backfill=backfill,
        comparison=comparison,
        changed=set(comparison.changed_hours),
        most_open_hours=MOST_OPEN_HOURS,
        as_ranges=_as_ranges,
        signed=signed,
    )


def as_json(backfill: Backfill, comparison: Comparison) -> str:
    """For programs: what the page says, and that the hours are UTC."""
    said = {
        "backfill_id": backfill.id,
        "source": backfill.source,
        "from": str(backfill.log_hours.start),
        "to": str(backfill.log_hours.end),
        "changed_hours": comparison.changed_hours,
        "old_clicks": comparison.old_clicks,
        "new_clicks": comparison.new_clicks,
        **asdict(comparison),
    }
    return orjson.dumps(said, option=orjson.OPT_INDENT_2).decode() + "\n"


def as_lines(comparison: Comparison) -> list[str]:
    """A few lines for a terminal, a log or a question."""
    rows = ", ".join(f"{sum(table.rows_changed.values()):,} rows of {table.table}" for table in comparison.tables)
    return [
        f"{len(comparison.changed_hours):,} of {len(comparison.hours):,} click hours change: {rows}",
        f"clicks in them: {comparison.old_clicks:,} published, {comparison.new_clicks:,} counted "
        f"({signed(comparison.new_clicks - comparison.old_clicks)})",
        f"checks: {comparison.checks:,}, {comparison.critical:,} critical failures, {comparison.warnings:,} warnings",
        *([f"held, and not published by an approval: {_as_ranges(comparison.held)}"] if comparison.held else []),
        *([f"left out, as a run has yet to count or validate them: {_as_ranges(comparison.waiting)}"]
          if comparison.waiting else []),
    ]  # fmt: skip


def _as_ranges(hours: Iterable[str]) -> str:
    return as_ranges(map(Hour.parse, hours))


def signed(number: int) -> str:
    """With its sign, if it is not 0."""
    return f"{number:+,}" if number else "0"

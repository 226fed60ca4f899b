"""The comparison of a staged backfill as a page and as JSON: ``reports/backfills/<id>.html`` and ``.json``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

import orjson

from include.backfills import Backfill
from include.documents.model import Column, Document, Line, Table
from include.documents.page import render_document
from include.hours import Hour, as_ranges
from include.pages.render import write_page
from include.settings import Settings
from include.texts import MAX_TEXT_CHARACTERS, as_count, crop_middle
from spark_jobs.backfill.compare import Comparison, TableChange, compare
from spark_jobs.lake.lake import Lake

#: More hours than these are folded away.
MOST_OPEN_HOURS = 48


def write_comparison(lake: Lake, settings: Settings, backfill: Backfill) -> tuple[Backfill, Comparison, Path]:
    """Compare, and write page and JSON; returns the page too."""
    backfill, comparison = compare(lake, backfill)
    page = settings.reports / "backfills" / f"{backfill.id}.html"
    write_page(as_json(backfill, comparison), page.with_suffix(".json"))
    return backfill, comparison, write_page(render_document(comparison_document(backfill, comparison)), page)


def comparison_document(backfill: Backfill, comparison: Comparison) -> Document:
    """The same comparison gives the same document."""
    begun, because = f"{backfill.begun_at:%Y-%m-%d %H:%M}", crop_middle(backfill.because, MAX_TEXT_CHARACTERS)
    change, *more = as_lines(comparison)
    approval = (
        "Readers see the published counts until a person approves this backfill. An approval is for the counts on this "
        "page: if they are counted again before it, they are compared again."
    )
    return Document(
        (*map(_largest, comparison.tables), _hours(comparison), *_failed(comparison)),
        title=f"Backfill {backfill.id}",
        subtitle=f"{backfill.source}, log hours {backfill.log_hours}, UTC. Begun {begun} UTC. {because}",
        verdict=(
            Line(change, "warned" if comparison.held or comparison.waiting else "good"),
            *map(Line, more),
            Line(approval, "quiet"),
        ),
        footer=f"Clickmill. To decide: Airflow's required actions, or clickmill decide-backfill {backfill.id} --help.",
    )


def _largest(table: TableChange) -> Line | Table:
    if not table.largest:
        return Line(f"{table.table}: no {table.key} has other clicks.")
    return Table(
        f"Largest changes of {table.table}, clicks over all these hours",
        (Column(table.key, "key"), Column("Published"), Column("Counted"), Column("Difference")),
        tuple(
            (change.key, as_count(change.old_clicks), as_count(change.new_clicks), signed(change.difference))
            for change in table.largest
        ),
    )


def _hours(comparison: Comparison) -> Table:
    headings = [
        "Published",
        "Counted",
        "Difference",
        *(f"Rows by {table.key} that change" for table in comparison.tables),
    ]
    return Table(
        "Click hours",
        (Column("Click hour", "name"), *map(Column, headings)),
        tuple(
            (
                hour.hour,
                as_count(hour.old_clicks),
                as_count(hour.new_clicks),
                signed(hour.new_clicks - hour.old_clicks),
                *(as_count(table.rows_changed.get(hour.hour, 0)) for table in comparison.tables),
            )
            for hour in comparison.hours
        ),
        MOST_OPEN_HOURS,
    )


def _failed(comparison: Comparison) -> Iterator[Line | Table]:
    if comparison.failed:
        yield Table("Checks that failed", (Column("", "text"),), tuple((check,) for check in comparison.failed))
        more = comparison.critical + comparison.warnings - len(comparison.failed)
        if more > 0:
            yield Line(f"and {as_count(more)} more: see Data quality in Airflow.", "quiet")


def as_json(backfill: Backfill, comparison: Comparison) -> str:
    """For programs: what the page says, and that the hours are UTC."""
    content = {
        "backfill_id": backfill.id,
        "source": backfill.source,
        "from": str(backfill.log_hours.start),
        "to": str(backfill.log_hours.end),
        "changed_hours": comparison.changed_hours,
        "old_clicks": comparison.old_clicks,
        "new_clicks": comparison.new_clicks,
        **asdict(comparison),
    }
    return orjson.dumps(content, option=orjson.OPT_INDENT_2).decode() + "\n"


def as_lines(comparison: Comparison) -> list[str]:
    """A few lines for a terminal, a log or a question."""
    left_out = {
        "held, and not published by an approval": comparison.held,
        "left out, as a run has yet to count or validate them": comparison.waiting,
        "dropped by a person": comparison.dropped,
    }
    rows = ", ".join(f"{sum(table.rows_changed.values()):,} rows of {table.table}" for table in comparison.tables)
    return [
        f"{len(comparison.changed_hours):,} of {len(comparison.hours):,} click hours change: {rows}",
        f"clicks in them: {comparison.old_clicks:,} published, {comparison.new_clicks:,} counted "
        f"({signed(comparison.new_clicks - comparison.old_clicks)})",
        f"checks: {comparison.checks:,}, {comparison.critical:,} critical failures, {comparison.warnings:,} warnings",
        *(f"{reason}: {_as_ranges(hours)}" for reason, hours in left_out.items() if hours),
    ]


def _as_ranges(hours: Iterable[str]) -> str:
    return as_ranges(map(Hour.parse, hours))


def signed(number: int) -> str:
    """With its sign, if it is not 0."""
    return f"{number:+,}" if number else "0"

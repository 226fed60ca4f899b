"""The published clicks of hours, days, weeks or months, for the terminal."""

from __future__ import annotations

from include.documents.model import Column, Document, Line, Table
from include.tables import VISITOR_COUNT_STANDARD_ERROR
from include.texts import as_count
from spark_jobs.publish.periods import Periods
from spark_jobs.publish.shown_results import key_table


def periods_document(shown: Periods) -> Document:
    """A row per period, newest last, and the busiest URLs and countries of the newest."""
    if not shown.periods:
        return Document((Line("Nothing published yet."),))
    headings = ("Clicks", "By crawlers", "Visitors*", "Hours")
    rows = tuple(
        (
            period.name,
            *map(as_count, (period.click_count, period.bot_click_count, period.visitor_count)),
            f"{period.hours_present}/{period.hours}",
            "" if period.is_final else "not final",
        )
        for period in shown.periods
    )
    newest = shown.periods[-1].name
    estimated = f"estimated: standard error {VISITOR_COUNT_STANDARD_ERROR:.1%}"
    return Document(
        (
            Table(
                f"Clicks by {shown.grain}, {shown.time_zone}",
                (Column(shown.grain.title(), "name"), *map(Column, headings), Column("", "name")),
                rows,
            ),
            key_table(f"Busiest URLs, {newest}", "URL", shown.urls),
            key_table(f"Countries, {newest}", "Country", shown.countries),
            Line(f"* crawlers left out; who comes again within the period is one; {estimated}", "quiet"),
            *((Line(shown.country_note, "quiet"),) if shown.country_note else ()),
        )
    )

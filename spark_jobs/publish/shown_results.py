"""The summary that a run ends with in the terminal: what was counted, does it hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from include.documents.model import Column, Document, Line, Table
from include.tables import VISITOR_COUNT_STANDARD_ERROR
from include.texts import as_count, as_share, plural
from spark_jobs.publish.report import AccountingTotals, KeyCount, ReportData, Verdict, busiest_first

MAX_KEYS = 10
MAX_FINDINGS = 10


def results_document(data: ReportData) -> Document:
    """The busiest URLs and countries, the totals and the verdict."""
    counted = (
        key_table("Busiest URLs", "URL", data.urls),
        key_table("Countries", "Country", data.countries),
        Line(f"* crawlers left out, estimated: standard error {VISITOR_COUNT_STANDARD_ERROR:.1%}", "quiet"),
        *((Line(data.country_note, "quiet"),) if data.country_note else ()),
    )
    nothing = (Line("Nothing published yet."),)
    return Document((*(counted if data.hours else nothing), _totals(data)), verdict=tuple(_verdict(data.verdict)))


def key_table(title: str, heading: str, counts: Iterable[KeyCount]) -> Table:
    """A row for each of the busiest keys."""
    return Table(
        title,
        (Column(heading, "key"), Column("Clicks"), Column("By crawlers"), Column("Visitors*")),
        tuple(
            (count.key, *map(as_count, (count.click_count, count.bot_click_count, count.visitor_count)))
            for count in busiest_first(counts)[:MAX_KEYS]
        ),
    )


def _totals(data: ReportData) -> Table:
    totals = AccountingTotals.of(data.accounting)
    to_count = (totals.lines_to_count, "lines to count" if totals.left_out else "lines")
    left_out = [("Left out", totals.left_out, totals.lines, "lines")] if totals.left_out else []
    rows = (
        *left_out,
        ("Accepted", totals.accepted, *to_count),
        ("Duplicates", totals.duplicates, *to_count),
        ("Quarantined", totals.quarantined, *to_count),
        ("Late", totals.late, totals.accepted, "accepted"),
        ("Crawler share", data.bot_click_count, data.click_count, "published clicks"),
    )
    return Table(
        "Totals",
        (Column("", "name"), Column(""), Column("", "name")),
        (
            ("Lines", as_count(totals.lines), ""),
            *((name, as_count(part), f"{as_share(part, whole)} of {of}") for name, part, whole, of in rows),
        ),
    )


def _verdict(verdict: Verdict) -> Iterator[Line]:
    """One line that says it; what is held, and warnings, which stop nothing, are listed below it."""
    if verdict.held:
        yield Line(f"HELD: {plural(len(verdict.held), 'click hour')}, until you decide", "failed")
    elif verdict.has_failed:
        failures = "; ".join(_shortened(verdict.critical_failures))
        yield Line(f"FAILED: {failures}" if failures else "FAILED", "failed")
    elif verdict.warnings:
        yield Line(f"PASSED with {plural(len(verdict.warnings), 'warning')}", "warned")
    else:
        yield Line("PASSED", "good")
    for kind, findings in (("held", verdict.held), ("decided", verdict.decided), ("warning", verdict.warnings)):
        for finding in _shortened(findings):
            yield Line(f"{kind}: {finding}")


def _shortened(findings: list[str]) -> list[str]:
    more = len(findings) - MAX_FINDINGS
    return findings[:MAX_FINDINGS] + ([f"and {more} more, all in the report"] if more > 0 else [])

"""The summary that a run ends with in the terminal: what was counted, does it hold, where the report is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from include.tables import VISITOR_COUNT_STANDARD_ERROR
from include.texts import as_count, as_share
from spark_jobs.engine.terminal import CroppedKey, plain_table, print_line
from spark_jobs.publish.report import AccountingTotals, KeyCount, ReportData, Verdict, busiest_first

MAX_KEYS = 10
MAX_FINDINGS = 10


def print_results(console: Console, data: ReportData, report: Path) -> None:
    """Print the busiest URLs and countries, the totals, the verdict and the report's path.

    Texts from logs are shown letter by letter: rich markup and terminal escapes in them have no effect.
    """
    if data.hours:
        console.print(key_table("Busiest URLs", "URL", data.urls), "")
        console.print(key_table("Countries", "Country", data.countries), "")
        print_line(
            console,
            f"* crawlers left out, estimated: standard error {VISITOR_COUNT_STANDARD_ERROR:.1%}",
            "dim",
        )
    else:
        print_line(console, "Nothing published yet.")
    console.print("", _totals_table(data), "")
    _print_verdict(console, data.verdict)
    print_line(console, f"Report: {report}")


def key_table(title: str, heading: str, counts: Iterable[KeyCount]) -> Table:
    """A row for each of the busiest keys."""
    table = plain_table(title)
    table.add_column(heading)
    for name in ("Clicks", "By crawlers", "Visitors*"):
        table.add_column(name, justify="right", no_wrap=True)
    for count in busiest_first(counts)[:MAX_KEYS]:
        table.add_row(
            CroppedKey(count.key),
            as_count(count.click_count),
            as_count(count.bot_click_count),
            as_count(count.visitor_count),
        )
    return table


def _totals_table(data: ReportData) -> Table:
    totals = AccountingTotals.of(data.accounting)
    table = plain_table("Totals", show_header=False)
    table.add_column("what", no_wrap=True)
    table.add_column("count", justify="right", no_wrap=True)
    table.add_column("share", no_wrap=True)
    table.add_row("Lines", as_count(totals.lines), "")
    table.add_row("Accepted", as_count(totals.accepted), f"{as_share(totals.accepted, totals.lines)} of lines")
    table.add_row("Duplicates", as_count(totals.duplicates), f"{as_share(totals.duplicates, totals.lines)} of lines")
    table.add_row("Quarantined", as_count(totals.quarantined), f"{as_share(totals.quarantined, totals.lines)} of lines")
    table.add_row("Late", as_count(totals.late), f"{as_share(totals.late, totals.accepted)} of accepted")
    table.add_row(
        "Crawler share",
        as_count(data.bot_click_count),
        f"{as_share(data.bot_click_count, data.click_count)} of published clicks",
    )
    return table


def _print_verdict(console: Console, verdict: Verdict) -> None:
    """One line that says it; what is held, and warnings, which stop nothing, are listed below it."""
    if verdict.held:
        number = len(verdict.held)
        print_line(console, f"HELD: {number} click hour{'' if number == 1 else 's'}, until you decide", "bold red")
        for held in _shortened(verdict.held):
            print_line(console, f"  held: {held}")
    elif verdict.has_failed:
        failures = _shortened(verdict.critical_failures)
        print_line(console, "FAILED: " + "; ".join(failures) if failures else "FAILED", "bold red")
    elif verdict.warnings:
        number = len(verdict.warnings)
        print_line(console, f"PASSED with {number} warning{'' if number == 1 else 's'}", "bold yellow")
    else:
        print_line(console, "PASSED", "bold green")
    for decided in _shortened(verdict.decided):
        print_line(console, f"  decided: {decided}")
    for warning in _shortened(verdict.warnings):
        print_line(console, f"  warning: {warning}")


def _shortened(findings: list[str]) -> list[str]:
    more = len(findings) - MAX_FINDINGS
    return findings[:MAX_FINDINGS] + ([f"and {more} more, all in the report"] if more > 0 else [])

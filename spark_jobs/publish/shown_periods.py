"""The published clicks of hours, days, weeks or months, for the terminal."""

from __future__ import annotations

from rich.console import Console

from include.tables import VISITOR_COUNT_STANDARD_ERROR
from include.texts import as_count
from spark_jobs.engine.terminal import plain_table, print_line
from spark_jobs.publish.periods import Periods
from spark_jobs.publish.shown_results import key_table


def print_periods(console: Console, shown: Periods) -> None:
    """Print a row per period, newest last, and the busiest URLs and countries of the newest."""
    if not shown.periods:
        print_line(console, "Nothing published yet.")
        return
    table = plain_table(f"Clicks by {shown.grain}, {shown.time_zone}")
    table.add_column(shown.grain.title(), no_wrap=True)
    for name in ("Clicks", "By crawlers", "Visitors*", "Hours"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for period in shown.periods:
        table.add_row(
            period.name,
            *map(as_count, (period.click_count, period.bot_click_count, period.visitor_count)),
            f"{period.hours_present}/{period.hours}",
            "" if period.is_final else "not final",
        )
    newest = shown.periods[-1].name
    console.print(table, "")
    console.print(key_table(f"Busiest URLs, {newest}", "URL", shown.urls), "")
    console.print(key_table(f"Countries, {newest}", "Country", shown.countries), "")
    print_line(
        console,
        "* crawlers left out; who comes again within the period is one; estimated: standard error "
        f"{VISITOR_COUNT_STANDARD_ERROR:.1%}",
        "dim",
    )

"""What a person is to know before deciding on a held click hour: how much there is, and what readers see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from include.holds import PUBLISHED, PUBLISHED_ANYWAY, ClickHourState
from include.hours import Hour, LogHour
from include.stored_rows import of_click_hour
from include.tables import (
    CLICKS_BY_COUNTRY_HOURLY,
    INGEST_ACCOUNTING,
    PUBLISHED_CLICKS_BY_COUNTRY_HOURLY,
    Table,
)
from spark_jobs.hours.account import left_out_of
from spark_jobs.lake.lake import Lake


def numbers_of_hold(lake: Lake, state: ClickHourState) -> list[str]:
    """A few lines: the clicks that would be published, the lines of the log hours that fail, and what readers see."""
    log_hours = {LogHour.parse(failure.partition) for failure in state.failures if " " in failure.partition}
    days = sorted({log_hour.hour.day for log_hour in log_hours})
    columns = ["source", "log_date", "log_hour", "lines", "accepted", "quarantined"]
    columns += ["quarantined_by_reason", "left_out_by_rule"]
    rows = lake.read_rows(INGEST_ACCOUNTING, columns, [("log_date", "in", days)])
    accounts = {LogHour.of(row): row for row in rows}
    counted = _clicks(lake, CLICKS_BY_COUNTRY_HOURLY, state.hour)
    return [
        f"counted: {counted:,} clicks in this hour, so many would be published",
        *(f"{log_hour}: {_described(accounts[log_hour])}" for log_hour in sorted(log_hours & accounts.keys())),
        f"readers see: {readers_see(lake, state)}",
    ]


def readers_see(lake: Lake, state: ClickHourState) -> str:
    """What is published of a click hour: nothing yet, or so many clicks since when."""
    made = [event for event in state.history if event.outcome in (PUBLISHED, PUBLISHED_ANYWAY) and not event.note]
    if not made:
        return "nothing of this hour yet"
    return f"{_clicks(lake, PUBLISHED_CLICKS_BY_COUNTRY_HOURLY, state.hour):,} clicks, {made[-1].described}"


def _clicks(lake: Lake, table: Table, hour: Hour) -> int:
    return sum(row["click_count"] for row in lake.read_rows(table, ["click_count"], of_click_hour(hour)))


def _described(account: Mapping[str, Any]) -> str:
    left_out = left_out_of(account)
    return (
        f"{account['lines']:,} lines: {account['accepted']:,} clicks, "
        f"{account['quarantined']:,} in quarantine{_listed(account['quarantined_by_reason'])}"
        + (f", {left_out.total():,} left out{_listed(left_out.items())}" if left_out else "")
    )


def _listed(counts: Iterable[tuple[str, int]]) -> str:
    listed = ", ".join(f"{number:,} {name}" for name, number in counts if number)
    return f" ({listed})" if listed else ""

"""Faults in daily tables, as ``tests.support.planted_faults`` in the others: they show in every hour of their day."""

from __future__ import annotations

from collections.abc import Callable

from deltalake import DeltaTable

from include.hours import Hour
from include.tables import CLICKS_BY_COUNTRY_HOURLY, CLICKS_BY_URL_HOURLY, Table, daily_table
from tests.support.fault import Fault
from tests.support.temporary_lake import TemporaryLake


def _one_more(daily: Table) -> Callable[[TemporaryLake, Hour], None]:
    """Give a key of the day, UTC, a click more."""

    def plant(lake: TemporaryLake, hour: Hour) -> None:
        stored = DeltaTable(lake.settings.lake / daily.name)
        of_day = f"time_zone = 'UTC' AND click_date = '{hour.day}'"
        key = daily.key[-1]
        least = min(row[key] for row in lake.rows(daily))
        changed = stored.update(updates={"click_count": "click_count + 1"}, predicate=f"{of_day} AND {key} = '{least}'")
        assert changed["num_updated_rows"] == 1

    return plant


DAY_FAULTS = [
    Fault(
        f"a {label} has a click more in `{daily_table(hourly).name}` than in the hours of the day",
        "critical",
        f"reconciliation.{label}_days_equal_hours",
        f"{label}_days_that_differ = 1; 2026-03-01 UTC has 9 clicks, its hours 8; keys that differ: 1",
        plant=_one_more(daily_table(hourly)),
    )
    for label, hourly in (("url", CLICKS_BY_URL_HOURLY), ("country", CLICKS_BY_COUNTRY_HOURLY))
]

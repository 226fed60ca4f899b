"""Faults of live counts: planted in a lake that is streamed, by ``tests/stream/test_live_reconciliation.py``."""

from __future__ import annotations

from collections.abc import Callable

from deltalake import DeltaTable

from include.hours import Hour
from include.tables import CLICKS_BY_COUNTRY_LIVE, CLICKS_BY_URL_LIVE, Table
from tests.support.fault import Fault
from tests.support.temporary_lake import TemporaryLake


def _of_hour(hour: Hour) -> str:
    return f"click_date = '{hour.day}' AND click_hour = {hour.hour} AND window_seconds = 3600"


def _remove_row(table: Table, predicate: str) -> Callable[[TemporaryLake, Hour], None]:
    def plant(lake: TemporaryLake, hour: Hour) -> None:
        removed = DeltaTable(lake.settings.lake / table.name).delete(f"{_of_hour(hour)} AND {predicate}")
        assert removed["num_deleted_rows"] == 1

    return plant


def _count_two_more(table: Table, predicate: str) -> Callable[[TemporaryLake, Hour], None]:
    def plant(lake: TemporaryLake, hour: Hour) -> None:
        stored = DeltaTable(lake.settings.lake / table.name)
        changed = stored.update(
            updates={"click_count": "click_count + 2"}, predicate=f"{_of_hour(hour)} AND {predicate}"
        )
        assert changed["num_updated_rows"] == 1

    return plant


LIVE_FAULTS = [
    Fault(
        "a row of `clicks_by_url_live` is gone",
        "warning",
        "reconciliation.live_by_url_equals_clicks",
        "web: 6 clicks, 3 live, 1 too late for live",
        plant=_remove_row(CLICKS_BY_URL_LIVE, "url = 'http://shop.test/twice'"),
    ),
    Fault(
        "a count in `clicks_by_country_live` is two more",
        "warning",
        "reconciliation.live_by_country_equals_clicks",
        "web: 6 clicks, 7 live, 1 too late for live",
        plant=_count_two_more(CLICKS_BY_COUNTRY_LIVE, "country_code = 'FR'"),
    ),
]

"""Clicks by click hour and key: as a lake has them published, and as its sample was made."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from include.hours import Hour

if TYPE_CHECKING:
    from include.tables import Table
    from samples.truth import Truth
    from tests.support.temporary_lake import TemporaryLake

ByHourAndKey = Counter[tuple[str, Any]]


def published_clicks(lake: TemporaryLake, table: Table) -> ByHourAndKey:
    """Of a table of hourly counts: ``("2026-03-01T05", key)`` to clicks."""
    counts: ByHourAndKey = Counter()
    for row in lake.rows(table):
        counts[str(Hour.of(row["click_date"], row["click_hour"])), row[table.key[-1]]] += row["click_count"]
    return counts


def true_clicks(truth: Truth, table: Table) -> ByHourAndKey:
    """The same, as the sample was made."""
    by_hour = {"url": truth.clicks_by_url, "country_code": truth.clicks_by_country}[table.key[-1]]
    return Counter({(hour, key): counts.clicks for hour, by_key in by_hour.items() for key, counts in by_key.items()})

"""What the live tables are to say, counted in plain Python."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from include.tables import CLICKS, Table
from tests.stream.streamed_lake import StreamedLake


def true_counts(lake: StreamedLake, key: str) -> Counter[tuple[datetime, int, str]]:
    """Clicks by window and key, from the clicks themselves."""
    counts: Counter[tuple[datetime, int, str]] = Counter()
    for row in lake.rows(CLICKS):
        at = row["clicked_at"].replace(second=0, microsecond=0)
        counts[at, 60, row[key]] += 1
        counts[at.replace(minute=0), 3600, row[key]] += 1
    return counts


def live_counts(lake: StreamedLake, table: Table, key: str) -> Counter[tuple[datetime, int, str]]:
    """What the live table says."""
    rows = lake.rows(table)
    counts = Counter({(row["window_start"], row["window_seconds"], row[key]): row["click_count"] for row in rows})
    assert len(counts) == len(rows), "one row per window and key"
    return counts

"""What rules have left out of a log hour, read from its account without Spark."""

from __future__ import annotations

from include.hours import Hour
from include.settings import Settings
from include.stored_rows import StoredLake, of_log_hour
from include.tables import INGEST_ACCOUNTING

_COLUMNS = ("source", "left_out_by_rule")


def read_left_out(settings: Settings, hour: Hour, source: str | None = None) -> dict[str, dict[str, int]]:
    """By source the lines that each rule has left out, most first; only sources that have some."""
    rows = StoredLake(settings.lake).read_rows(INGEST_ACCOUNTING, _COLUMNS, of_log_hour(hour, source))
    by_source = {row["source"]: dict(row["left_out_by_rule"] or ()) for row in rows}
    return {
        name: dict(sorted(counts.items(), key=lambda count: (-count[1], count[0])))
        for name, counts in sorted(by_source.items())
        if counts
    }

"""Every table, declared once: names, grain, types, keys, partitioning and a comment per column.

Writers, checks and docs import them from here. Types are Spark SQL types. Hours are UTC, and days too, but in the daily
tables. What a module declares is in ``TABLES``; what a table is, in ``model``.
"""

from __future__ import annotations

from include.tables import arrivals, journal, quality, releases, replays, streams
from include.tables.arrivals import (
    CLICKS,
    DUPLICATE_CLICKS,
    INGEST_ACCOUNTING,
    MAX_RAW_CHARACTERS,
    QUARANTINE_REASONS,
    QUARANTINED_CLICKS,
    UNFINISHED_INGESTS,
)
from include.tables.counts import (
    AGGREGATES,
    CLICKS_BY_COUNTRY_DAILY,
    CLICKS_BY_COUNTRY_HOURLY,
    CLICKS_BY_COUNTRY_LIVE,
    CLICKS_BY_URL_DAILY,
    CLICKS_BY_URL_HOURLY,
    CLICKS_BY_URL_LIVE,
    COUNTS,
    OTHER_KEYS,
    PUBLISHED,
    PUBLISHED_CLICKS_BY_COUNTRY_DAILY,
    PUBLISHED_CLICKS_BY_COUNTRY_HOURLY,
    PUBLISHED_CLICKS_BY_URL_DAILY,
    PUBLISHED_CLICKS_BY_URL_HOURLY,
    PUBLISHED_VERSION,
    QUARTERS,
    SKETCH_LG_K,
    UNKNOWN_COUNTRY,
    VISIBILITY,
    VISITOR_COUNT_STANDARD_ERROR,
    daily_table,
    hourly_table,
    live_table,
)
from include.tables.journal import JOURNAL
from include.tables.model import Column, Table
from include.tables.quality import GROUPING_METRICS, OUT_OF_ORDER_KEYS, QUALITY_RESULTS
from include.tables.releases import (
    COUNT_RELEASES,
    RELEASED_CLICKS_BY_COUNTRY_AND_URL_DAILY,
    RELEASED_CLICKS_BY_COUNTRY_DAILY,
)
from include.tables.replays import REPLAY_OUTCOMES, REPLAYED_LINES
from include.tables.streams import STREAM_BATCHES, STREAM_PROGRESS

_MODULES = (releases, quality, streams, replays, journal)
#: By name, all that the modules declare.
TABLES = {
    table.name: table
    for tables in (vars(arrivals).values(), COUNTS, *(vars(module).values() for module in _MODULES))
    for table in tables
    if isinstance(table, Table)
}

__all__ = [
    "AGGREGATES",
    "CLICKS",
    "CLICKS_BY_COUNTRY_DAILY",
    "CLICKS_BY_COUNTRY_HOURLY",
    "CLICKS_BY_COUNTRY_LIVE",
    "CLICKS_BY_URL_DAILY",
    "CLICKS_BY_URL_HOURLY",
    "CLICKS_BY_URL_LIVE",
    "COUNT_RELEASES",
    "DUPLICATE_CLICKS",
    "GROUPING_METRICS",
    "INGEST_ACCOUNTING",
    "JOURNAL",
    "MAX_RAW_CHARACTERS",
    "OTHER_KEYS",
    "OUT_OF_ORDER_KEYS",
    "PUBLISHED",
    "PUBLISHED_CLICKS_BY_COUNTRY_DAILY",
    "PUBLISHED_CLICKS_BY_COUNTRY_HOURLY",
    "PUBLISHED_CLICKS_BY_URL_DAILY",
    "PUBLISHED_CLICKS_BY_URL_HOURLY",
    "PUBLISHED_VERSION",
    "QUALITY_RESULTS",
    "QUARANTINED_CLICKS",
    "QUARANTINE_REASONS",
    "QUARTERS",
    "RELEASED_CLICKS_BY_COUNTRY_AND_URL_DAILY",
    "RELEASED_CLICKS_BY_COUNTRY_DAILY",
    "REPLAYED_LINES",
    "REPLAY_OUTCOMES",
    "SKETCH_LG_K",
    "STREAM_BATCHES",
    "STREAM_PROGRESS",
    "TABLES",
    "UNFINISHED_INGESTS",
    "UNKNOWN_COUNTRY",
    "VISIBILITY",
    "VISITOR_COUNT_STANDARD_ERROR",
    "Column",
    "Table",
    "daily_table",
    "hourly_table",
    "live_table",
]

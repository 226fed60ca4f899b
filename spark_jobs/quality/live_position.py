"""How far the live counts of streamed sources have got: for the checks that compare them with the clicks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from include.counting import key_label, live_count_table
from include.duckdb_sql import run_sql
from include.hours import Hour
from include.sources import load_sources
from include.tables import STREAM_BATCHES, STREAM_PROGRESS, Table
from spark_jobs.lake.lake import Lake

#: One row per source, key and click hour. Of micro-batches that do not say the hour, all that came too late count.
_POSITIONS = """
WITH begun AS (
    -- A checkpoint that was begun again has counted all once more.
    SELECT source, query, max(began_at) AS since FROM progress WHERE batch_id = 0 GROUP BY ALL
),
arrived AS (
    SELECT source, hour, max(written_at) AS arrived_at
    FROM (SELECT source, unnest(click_hours) AS hour, written_at FROM batches)
    GROUP BY ALL
)
SELECT b.source, key, click_date, click_hour,
    CASE
        WHEN count(p.batch_id) = 0 THEN 'the watermark has not passed the hour'
        WHEN max(p.began_at) < max(arrived_at) THEN 'not all of its clicks have been read'
    END AS state,
    coalesce(sum(if(too_late_by_hour IS NULL, too_late, coalesce(too_late_by_hour[h.hour], 0))), 0)::BIGINT AS too_late
FROM begun b
    JOIN queries USING (query)
    CROSS JOIN click_hours h
    LEFT JOIN progress p
        ON p.source = b.source AND p.query = b.query AND p.began_at >= since AND p.watermark >= ends_at
    LEFT JOIN arrived a ON a.source = b.source AND a.hour = h.hour
GROUP BY b.source, key, click_date, click_hour
"""
_PROGRESS = ["source", "query", "batch_id", "began_at", "watermark", "too_late", "too_late_by_hour"]


def live_tables(lake: Lake) -> dict[str, Table]:
    """The live tables that there are, by what they are per: ``url``, ``country``, and the further keys."""
    tables = {key_label(key): live_count_table(key) for key in lake.settings.pipeline.counts}
    return {key: table for key, table in tables.items() if lake.exists(table)}


def live_positions(lake: Lake, click_hours: Collection[Hour]) -> list[Mapping[str, Any]]:
    """Facts, one for each streamed source, key and click hour, of sources that are counted live.

    ``state`` is null when the hour's live counts are final, and the words for what is still to come when they are not:
    the watermark has not passed the hour, or clicks of it have come that the live counts have not read. ``too_late``
    are the clicks that came after the watermark had passed.
    """
    streamed = [name for name, source in load_sources(lake.settings).items() if source.stream is not None]
    first, queries = min(click_hours, default=None), list(lake.settings.pipeline.counts)
    if first is None or not streamed:
        return []
    live = [("source", "in", streamed), ("query", "in", queries)]
    has_begun, has_passed = [*live, ("batch_id", "=", 0)], [*live, ("watermark", ">=", first.end)]
    # A clock may be ahead, but no day.
    around = [("source", "in", streamed), ("log_date", ">=", first.plus(-24).day)]
    positions = run_sql(
        _POSITIONS,
        progress=lake.open_table(STREAM_PROGRESS, _PROGRESS, [has_begun, has_passed]).read_all(),
        batches=lake.read_table(STREAM_BATCHES, ["source", "click_hours", "written_at"], around),
        queries=pa.table({"query": queries, "key": list(map(key_label, queries))}),
        click_hours=pa.Table.from_pylist(
            [
                {"hour": str(hour), "click_date": hour.day, "click_hour": hour.hour, "ends_at": hour.end}
                for hour in click_hours
            ]
        ),
    )
    facts: list[Mapping[str, Any]] = positions.to_pylist()
    return facts

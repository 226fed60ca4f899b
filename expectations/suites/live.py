"""Of suite ``reconciliation``: the live counts of streamed clicks against the clicks themselves.

Live counts are provisional, and nothing is published of them: so these checks warn.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from expectations.checks import WARNING, Check, zero
from expectations.facts import Facts
from expectations.frames import hours_table
from expectations.judge import Finding, Partition
from include.counting import CountKey, key_label, live_count_table
from include.duckdb_sql import run_sql
from include.hours import Hour, click_hour_of

#: The outcome where an hour's live counts are still to change: neither a pass nor a failure.
NOT_FINAL = "not_final"

#: One row per key and click hour: the clicks, of all sources that are final, that nothing explains; null if none is.
#: Of micro-batches that do not say the hour, all that came too late count.
_HOURS = """
WITH begun AS (
    -- A checkpoint that was begun again has counted all once more.
    SELECT source, query, max(began_at) AS since FROM live_progress WHERE batch_id = 0 GROUP BY ALL
),
arrived AS (
    SELECT source, hour, max(written_at) AS arrived_at
    FROM (SELECT source, unnest(click_hours) AS hour, written_at FROM micro_batches)
    GROUP BY ALL
),
-- ``state`` is what is still to come; null when the hour's live counts are final.
positions AS (
    SELECT b.source, key, click_date, click_hour,
        CASE
            WHEN count(p.batch_id) = 0 THEN 'the watermark has not passed the hour'
            WHEN max(p.began_at) < max(arrived_at) THEN 'not all of its clicks have been read'
        END AS state,
        coalesce(sum(if(too_late_by_hour IS NULL, too_late, coalesce(too_late_by_hour[h.hour], 0))), 0)::BIGINT
            AS too_late
    FROM begun b
        JOIN queries USING (query)
        CROSS JOIN hours h
        LEFT JOIN live_progress p ON p.source = b.source AND p.query = b.query
            AND p.began_at >= since AND epoch_us(p.watermark) >= (hour_number + 1) * 3_600_000_000
        LEFT JOIN arrived a ON a.source = b.source AND a.hour = h.hour
    GROUP BY b.source, key, click_date, click_hour
),
stored AS (
    SELECT source, click_date, click_hour, sum(clicks) AS stored FROM clicks GROUP BY ALL
),
compared AS (
    SELECT p.*, coalesce(stored, 0)::BIGINT AS stored, coalesce(l.clicks, 0) AS live
    FROM positions p
        LEFT JOIN stored USING (source, click_date, click_hour)
        LEFT JOIN live_counts l USING (key, source, click_date, click_hour)
)
SELECT key, click_date, click_hour,
    sum(if(live > stored, live - stored, greatest(0, stored - live - too_late))) FILTER (state IS NULL)::BIGINT
        AS unexplained,
    string_agg(
        format('{}: {:,} clicks, {:,} live', source, stored, live)
        || coalesce('; not final: ' || state, format(', {:,} too late for live', too_late)),
        '; ' ORDER BY source
    ) AS observed
FROM compared
WHERE stored <> 0 OR live <> 0
GROUP BY ALL
ORDER BY key, click_date, click_hour
"""


def click_hour_checks(counts: Iterable[CountKey]) -> list[Check]:
    """Of each click hour of which streamed clicks are counted live, one for each key."""
    return [
        Check(
            suite="reconciliation",
            name=_name(key),
            table=live_count_table(key).name,
            expectation=zero(_name(key)),
            severity=WARNING,
            holds=f"once the watermark has passed the hour, no source has more live clicks per {key_label(key)} than "
            "clicks, and no more are missing than came too late for live",
            reason="The hour's own counts come from clicks and are not touched: what is wrong is what was shown live. "
            "After a crash of the stream too few may be known to have come too late; else the live table was changed. "
            "To count live again from clicks, stop the stream, remove streams/<source>-live-<key> and start it.",
            when_null=NOT_FINAL,
        )
        for key in counts
    ]


def live_findings(
    click_hours: Iterable[Hour], facts: Facts, counts: Iterable[CountKey]
) -> dict[tuple[Partition, str], Finding]:
    """What the live counts of these keys say of the click hours; nothing of those without clicks."""
    queries = pa.Table.from_pylist([{"query": key, "key": key_label(key)} for key in counts])
    hours = run_sql(_HOURS, **facts, queries=queries, hours=hours_table(click_hours, "click")).to_pylist()
    return {
        (Partition(click_hour_of(hour)), _name(hour["key"])): Finding(
            hour["unexplained"], hour["observed"], hour["unexplained"], 0, 0
        )
        for hour in hours
    }


def _name(key: str) -> str:
    return f"live_by_{key_label(key)}_equals_clicks"

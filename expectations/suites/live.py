"""Of suite ``reconciliation``: the live counts of streamed clicks against the clicks themselves.

Live counts are provisional, and nothing is published of them: so these checks warn.
"""

from __future__ import annotations

from collections.abc import Iterable

from expectations.checks import WARNING, Check, zero
from expectations.facts import Facts
from expectations.findings import Finding, Partition
from include.counting import CountKey, key_label, live_count_table
from include.duckdb_sql import run_sql
from include.hours import click_hour_of

#: The outcome where an hour's live counts are still to change: neither a pass nor a failure.
NOT_FINAL = "not_final"

#: One row per key and click hour: the clicks, of all sources that are final, that nothing explains; null if none is.
_HOURS = """
WITH stored AS (
    SELECT source, click_date, click_hour, sum(clicks) AS stored FROM clicks GROUP BY ALL
),
compared AS (
    SELECT p.*, coalesce(stored, 0)::BIGINT AS stored, coalesce(l.clicks, 0) AS live
    FROM live_positions p
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


def live_findings(facts: Facts) -> dict[tuple[Partition, str], Finding]:
    """What the live counts say of the hours that they have positions of; nothing of those without clicks."""
    return {
        (Partition(click_hour_of(hour)), _name(hour["key"])): Finding(
            hour["unexplained"], hour["observed"], hour["unexplained"], 0, 0
        )
        for hour in run_sql(_HOURS, **facts).to_pylist()
    }


def _name(key: str) -> str:
    return f"live_by_{key_label(key)}_equals_clicks"

"""The frames that the suites judge, each one SQL statement over facts: a row per log hour, click hour, or operator.

Beside what is judged a frame has ``partition``, ``source`` and ``hour``; null is where there is nothing to judge. The
SQL is DuckDB's; its tables are those of ``expectations/facts.py``, and what was asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

import pandas as pd
import pyarrow as pa

from expectations.checks import Check, RowRule, counted_rows
from expectations.facts import Facts
from include.buckets import Layout
from include.counting import COMBINE
from include.days import Day
from include.duckdb_sql import quoted, quoted_name, run_sql
from include.hours import Hour
from include.shares import QUARANTINED_SHARES
from include.sources import Source
from include.tables import CLICKS, QUARANTINED_CLICKS, Table
from include.uneven_load import skew, uneven_load_advice

#: Of nothing a sum is 0, and there is no share. Of names the first five are listed. Moments are in microseconds.
_MACROS = """
CREATE TEMP MACRO total(number) AS coalesce(sum(number), 0)::BIGINT;
CREATE TEMP MACRO share(part, whole) AS part / nullif(whole, 0);
CREATE TEMP MACRO listed(names) AS
    array_to_string(names[1:5], ', ') || if(len(names) > 5, ' and ' || (len(names) - 5) || ' more', '');
CREATE TEMP MACRO start_of(day, hour) AS ((day - DATE '1970-01-01') * 24 + hour) * 3_600_000_000;
CREATE TEMP MACRO contents(rows, clicks, rows_hash) AS (coalesce(rows, 0), coalesce(clicks, 0), coalesce(rows_hash, 0));
CREATE TEMP MACRO in_words(contents) AS contents[1] || ' rows with ' || contents[2] || ' clicks';
"""

#: An hour that is not in the accounting has no row in ``measured``, so all of it is null but whether it is missing.
_LOG_HOURS = """
WITH asked AS (SELECT {source} AS source, * FROM log_hours),
accounts AS (
    SELECT *,
        coalesce(left_out, 0) AS not_to_count,
        -- Other shares are of these, so that what is left out hides nothing.
        lines - not_to_count AS lines_to_count,
        NOT is_closed AND files = 0 AS nothing_landed,
        CASE
            WHEN nothing_landed THEN 'nothing had landed, not even _SUCCESS, when its grace time was over'
            WHEN lines <> 0 THEN lines || ' lines in ' || files || ' files'
            WHEN is_closed THEN 'it is empty: closed by _SUCCESS, without a line'
            ELSE 'it is empty: ' || files || ' files, without a line'
        END AS presence,
        -- An hour of which nothing landed is missing, and no further complaint about it is needed.
        if(nothing_landed, [], list_concat(
            if(is_closed, [], ['not closed by _SUCCESS']), [name || ' breaks off' for name in damaged_files]
        )) AS damages
    FROM asked JOIN accounting USING (source, log_date, log_hour)
),
stored AS (
    SELECT source, log_date, log_hour,
        total(clicks) AS stored_clicks,
        total(if(start_of(click_date, click_hour) < start_of(log_date, log_hour), clicks, 0)) AS late_clicks,
        (start_of(log_date, log_hour) - min(first_clicked_micros)) / 3_600_000_000 AS oldest_click_hours_before,
        (max(last_clicked_micros) - start_of(log_date, log_hour + 1)) / 60_000_000 AS newest_click_minutes_after,
        count(*) FILTER (
            first_clicked_micros < start_of(click_date, click_hour)
            OR last_clicked_micros >= start_of(click_date, click_hour + 1)
        ) AS click_hours_not_of_their_times,
        {counted} AS counted
    FROM accounts
        LEFT JOIN (FROM clicks ANTI JOIN open_log_hours USING (source, log_date, log_hour))
        USING (source, log_date, log_hour)
    GROUP BY source, log_date, log_hour
),
refused AS (
    SELECT source, log_date, log_hour,
        total(quarantined_lines) AS quarantined,
        map_from_entries(list((reason, quarantined_lines))) AS by_reason
    FROM quarantined
    GROUP BY ALL
),
measured AS (
    SELECT source, log_date, log_hour,
        nothing_landed::BIGINT AS is_missing,
        presence,
        len(damages) AS files_not_closed_or_damaged,
        listed(damages) AS damage,
        coalesce(len(unread_files), 0) AS files_not_read,
        coalesce(listed(unread_files), '') AS unread,
        lines, accepted, a.duplicates, stored_clicks, a.files, bytes,
        stored_clicks + a.duplicates + coalesce(quarantined, 0) + not_to_count AS accounted_lines,
        -- The state of a stream drops duplicates; they are in no table.
        if({is_streamed}, a.duplicates, coalesce(d.duplicates, 0)) AS stored_duplicates,
        coalesce(duplicate_event_ids, 0) AS duplicate_event_ids,
        oldest_click_hours_before, newest_click_minutes_after, click_hours_not_of_their_times,
        share(a.duplicates, lines_to_count) AS duplicate_share,
        share(coalesce(quarantined, 0), lines_to_count) AS quarantined_share,
        {shares_by_reason},
        share(not_to_count, lines) AS left_out_share,
        share(late_clicks, stored_clicks) AS late_share,
        share(out_of_order, accepted) AS out_of_order_share,
        share(if(distinct_urls > stored_clicks, stored_clicks, distinct_urls), stored_clicks) AS distinct_url_share,
        because,
        (SELECT count(*) FROM other_types) AS columns_of_other_types,
        (SELECT coalesce(listed(list(column_name || ' is ' || stored_type)), '') FROM other_types) AS other_types,
        {files},
        counted
    FROM accounts a
        JOIN stored USING (source, log_date, log_hour)
        LEFT JOIN refused USING (source, log_date, log_hour)
        LEFT JOIN urls USING (source, log_date, log_hour)
        LEFT JOIN duplicates d USING (source, log_date, log_hour)
        LEFT JOIN duplicate_ids USING (source, hour_number)
        LEFT JOIN (FROM files WHERE table_name = {clicks}) of_clicks USING (source, log_date, log_hour)
        LEFT JOIN (FROM files WHERE table_name = {quarantined}) of_quarantined USING (source, log_date, log_hour)
)
SELECT source || ' ' || hour AS partition, source, hour,
    coalesce(is_missing, 1) AS is_missing,
    coalesce(presence, if(is_unfinished, 'its ingest has not ended', 'it was never ingested')) AS presence,
    measured.* EXCLUDE (source, log_date, log_hour, is_missing, presence, counted),
    {rules}
FROM asked
    LEFT JOIN measured USING (source, log_date, log_hour)
    LEFT JOIN (SELECT *, true AS is_unfinished FROM unfinished) USING (source, log_date, log_hour)
ORDER BY hour
"""

_CLICK_HOURS = """
WITH stored AS (
    SELECT click_date, click_hour, total(clicks) AS clicks
    FROM clicks ANTI JOIN open_log_hours USING (source, log_date, log_hour)
    GROUP BY ALL
),
-- Of a key that is published as it is counted, what was counted.
expected AS (
    FROM publishable
    UNION ALL BY NAME
    SELECT key, click_date, click_hour, rows, clicks, rows_hash FROM counts ANTI JOIN publishable USING (key)
),
-- Null of an hour whose days another run has yet to compute: it has counted other hours of them since. Its own run
-- computes them after the hour.
day_sums AS (
    SELECT key, click_date, click_hour,
        bool_or(
            coalesce(hours_counted_micros, 0) > coalesce(day_counted_micros, 0)
            AND coalesce(counted_micros <= coalesce(day_counted_micros, 0), true)
        ) AS is_left,
        if(is_left, NULL, count(*) FILTER (keys_that_differ > 0)) AS days_that_differ,
        if(is_left, NULL, coalesce(listed(list(
            day || ' ' || time_zone || ' has ' || day_clicks || ' clicks, its hours ' || hour_clicks
            || '; keys that differ: ' || keys_that_differ
            ORDER BY time_zone, day
        ) FILTER (keys_that_differ > 0)), '')) AS days
    FROM days
        JOIN hours_of_days USING (time_zone, day)
        LEFT JOIN counts USING (key, click_date, click_hour)
    GROUP BY ALL
),
of_keys AS (
    SELECT key, click_date, click_hour, fewest, most, key_type,
        coalesce(c.clicks, 0) AS clicks,
        coalesce(c.rows, 0) AS rows,
        coalesce(keys, 0) AS keys,
        -- An hour that lost its clicks has no rows, and no smallest count to judge.
        smallest_count,
        share(coalesce(largest_count, 0), c.clicks) AS top_share,
        counted,
        f.files, lost,
        -- Null unless it was published since it was counted.
        published_micros > counted_micros AS is_published,
        contents(p.rows, p.clicks, p.rows_hash) AS shown,
        contents(e.rows, e.clicks, e.rows_hash) AS computed,
        if(is_published, (shown <> computed)::BIGINT, NULL) AS differs,
        if(is_published, 'published ' || in_words(shown) || ', computed ' || in_words(computed), NULL)
            AS published,
        -- An hour that is not in ``day_sums`` has no days.
        if(is_left IS NULL, 0, days_that_differ) AS days_that_differ,
        if(is_left IS NULL, '', days) AS days
    FROM click_hours CROSS JOIN layouts
        LEFT JOIN counts c USING (key, click_date, click_hour)
        LEFT JOIN published p USING (key, click_date, click_hour)
        LEFT JOIN expected e USING (key, click_date, click_hour)
        LEFT JOIN day_sums USING (key, click_date, click_hour)
        LEFT JOIN publications USING (click_date, click_hour)
        LEFT JOIN files f USING (table_name, click_date, click_hour)
)
SELECT hour AS partition, NULL::VARCHAR AS source, hour, coalesce(stored.clicks, 0) AS clicks,
    {columns}
FROM click_hours
    LEFT JOIN stored USING (click_date, click_hour)
    {joins}
ORDER BY hour
"""
_OF_KEY = """
    of_{key}.clicks AS clicks_by_{key},
    of_{key}.smallest_count AS smallest_{key}_count,
    of_{key}.rows AS {key}_rows,
    of_{key}.keys AS {key}_keys,
    of_{key}.fewest AS {key}_fewest_buckets,
    of_{key}.most AS {key}_most_buckets,
    of_{key}.key_type AS {key}_key_type,
    of_{key}.top_share AS top_{key}_share,
    of_{key}.differs AS published_{key}_differs,
    of_{key}.published AS published_{key},
    of_{key}.days_that_differ AS {key}_days_that_differ,
    of_{key}.days AS {key}_days
"""

#: Of the newest run of each operator. None of one that combines: so few rows move that it does not matter how evenly.
_LOADS = f"""
SELECT operator, log_hours, grouping, instances,
    total(rows) AS clicks,
    max(rows) AS busiest_rows,
    first(busiest_key ORDER BY busiest_key_share * rows DESC) AS busiest_key,
    round(max(busiest_key_share * rows)) AS busiest_key_rows
FROM (FROM groupings QUALIFY measured_at = max(measured_at) OVER (PARTITION BY operator))
WHERE NOT starts_with(grouping, {quoted(COMBINE)})
GROUP BY ALL
ORDER BY operator
"""


def log_hour_frame(source: Source, hours: Iterable[Hour], facts: Facts, checks: Sequence[Check]) -> pd.DataFrame:
    """One row per log hour of the source, for these checks; ``partition`` names it, such as ``web 2026-03-01T05``.

    Of an hour that is not in the accounting all is null but whether it is missing.
    """
    rules = counted_rows(checks, CLICKS.name)
    counted = (f"{quoted(rule.name)}: total(counted[{quoted(rule.name)}])" for rule in rules)
    shares = (
        f"share(coalesce(by_reason[{quoted(reason)}], 0), lines_to_count) AS {metric}"
        for metric, reason in QUARANTINED_SHARES.items()
    )
    sql = _LOG_HOURS.format(
        source=quoted(source.name),
        is_streamed=source.stream is not None,
        counted=f"MAP {{{', '.join(counted)}}}",
        shares_by_reason=", ".join(shares),
        files=f"{_files('clicks')}, {_files('quarantined')}",
        clicks=quoted(CLICKS.name),
        quarantined=quoted(QUARANTINED_CLICKS.name),
        rules=", ".join(_by_rule(rules, "counted[{}]", "stored_clicks")),
    )
    return _frame(sql, facts, log_hours=hours_table(hours, "log"))


def click_hour_frame(
    hours: Iterable[Hour], facts: Facts, layouts: Mapping[str, tuple[Table, Layout]], checks: Sequence[Check]
) -> pd.DataFrame:
    """One row per click hour, for these checks; ``partition`` names it.

    ``layouts`` has the tables of counts by what they are per.
    """
    columns, joins = [], []
    for key, (table, _) in layouts.items():
        rules = _by_rule(counted_rows(checks, table.name), f"coalesce(of_{key}.counted[{{}}], 0)", f"of_{key}.clicks")
        columns += [_OF_KEY.format(key=key), _files(key), *rules]
        joins.append(f"JOIN (FROM of_keys WHERE key = {quoted(key)}) of_{key} USING (click_date, click_hour)")
    stored = [{"key": key, "table_name": table.name, **asdict(layout)} for key, (table, layout) in layouts.items()]
    return _frame(
        _CLICK_HOURS.format(columns=", ".join(columns), joins=" ".join(joins)),
        facts,
        click_hours=hours_table(hours, "click"),
        hours_of_days=_hours_of_days(facts["days"]),
        layouts=pa.Table.from_pylist(stored),
    )


def grouping_frame(facts: Facts) -> pd.DataFrame:
    """One row per counting operator; ``partition`` names it and the log hours that it was run for."""
    return pd.DataFrame(
        [
            {
                "partition": f"{load['operator']} {load['log_hours']}",
                "source": None,
                "hour": load["log_hours"].split()[0],
                "skew": skew(load["busiest_rows"], load["clicks"], load["instances"]),
                "uneven_load": uneven_load_advice(
                    load["grouping"],
                    load["instances"],
                    load["busiest_key"],
                    load["busiest_key_rows"] / load["clicks"] if load["clicks"] else 0.0,
                ),
            }
            for load in run_sql(_MACROS + _LOADS, groupings=facts["groupings"]).to_pylist()
        ]
    )


def hours_table(hours: Iterable[Hour], kind: str) -> pa.Table:
    """One row per hour: as text, as the date and hour of its kind, ``log`` or ``click``, and in hours since 1970."""
    day, of_day = f"{kind}_date", f"{kind}_hour"
    schema = pa.schema({"hour": pa.string(), day: pa.date32(), of_day: pa.int32(), "hour_number": pa.int64()})
    rows = [{"hour": str(hour), day: hour.day, of_day: hour.hour, "hour_number": hour.number} for hour in hours]
    return pa.Table.from_pylist(rows, schema)


def _frame(sql: str, facts: Facts, **asked: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = run_sql(_MACROS + sql, **facts, **asked).to_pandas()
    return frame


def _hours_of_days(days: pa.Table) -> pa.Table:
    """One row per time zone, day and click hour of it, of these days."""
    rows = [
        {"time_zone": time_zone, "day": day, "click_date": hour.day, "click_hour": hour.hour}
        for time_zone, day in {(fact["time_zone"], fact["day"]) for fact in days.to_pylist()}
        for hour in Day(time_zone, day).hours
    ]
    schema = [("time_zone", pa.string()), ("day", pa.date32()), ("click_date", pa.date32()), ("click_hour", pa.int32())]
    return pa.Table.from_pylist(rows, pa.schema(schema))


def _files(name: str) -> str:
    return (
        f"coalesce(of_{name}.files, 0) AS {name}_files, coalesce(len(of_{name}.lost), 0) AS lost_{name}_files, "
        f"coalesce(listed(of_{name}.lost), '') AS lost_{name}_file_names"
    )


def _by_rule(rules: Iterable[RowRule], number: str, rows: str) -> Iterator[str]:
    """A column for each rule, by its name: the rows that it counts, or their share of the rows."""
    for rule in rules:
        counted = number.format(quoted(rule.name))
        yield f"{f'share({counted}, {rows})' if rule.as_share else counted} AS {quoted_name(rule.name)}"

"""The same work as Clickmill's ingest and aggregate, in DuckDB: what a single process without a lake needs for it."""

from __future__ import annotations

import shutil
from pathlib import Path

import crawleruseragents
import duckdb

COLUMNS = """{event_id: 'VARCHAR', ts: 'VARCHAR', url: 'VARCHAR', geo: 'STRUCT(country VARCHAR)', visitor_id: 'VARCHAR',
              referrer: 'VARCHAR', user_agent: 'VARCHAR', status: 'VARCHAR'}"""


def run(landing: Path, out: Path, *, same_work: bool) -> dict[str, int]:
    """Read, parse, write partitioned Parquet and both aggregates; returns clicks by country code.

    With ``same_work`` also what Clickmill does beyond that: malformed lines and duplicates left out, URLs normalised,
    crawlers labelled. Without, it is the least that a script would do.
    """
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    connection.execute("SET TimeZone = 'UTC'")
    files = f"read_json('{landing}/web/*/*/*.gz', columns = {COLUMNS}, format = 'newline_delimited', \
        hive_partitioning = true, ignore_errors = true, maximum_object_size = 16777216)"
    connection.execute(_clicks(connection, files) if same_work else _plain(files))
    connection.execute(f"COPY clicks TO '{out}/clicks' (FORMAT parquet, PARTITION_BY (log_date, log_hour))")
    for key in ("url", "country_code"):
        connection.execute(
            f"""COPY (SELECT date_trunc('hour', clicked_at) AS click_hour, {key}, count(*) AS click_count,
                    count(*) FILTER (is_bot) AS bot_click_count,
                    approx_count_distinct(visitor_id) FILTER (NOT is_bot) AS visitor_count
                FROM clicks GROUP BY ALL) TO '{out}/by_{key}.parquet' (FORMAT parquet)"""
        )
    rows = connection.execute("SELECT country_code, count(*) FROM clicks GROUP BY ALL").fetchall()
    connection.close()
    return dict(rows)


def _is_crawler(user_agent: str) -> bool:
    return bool(crawleruseragents.is_crawler(user_agent))


def _plain(files: str) -> str:
    return f"""CREATE TABLE clicks AS SELECT event_id, try_cast(ts AS TIMESTAMPTZ) AS clicked_at, url,
        geo.country AS country_code, visitor_id, referrer, user_agent, status,
        contains(user_agent, 'bot') AS is_bot, log_date, log_hour
        FROM {files} WHERE clicked_at IS NOT NULL AND url IS NOT NULL"""


def _clicks(connection: duckdb.DuckDBPyConnection, files: str) -> str:
    connection.create_function("is_crawler", _is_crawler)
    connection.execute(
        f"""CREATE TABLE parsed AS SELECT event_id, try_cast(ts AS TIMESTAMPTZ) AS clicked_at, url AS logged_url,
            upper(trim(geo.country)) AS country, visitor_id, referrer, user_agent, try_cast(status AS INT) AS status,
            log_date, log_hour, row_number() OVER () AS line
        FROM {files}
        WHERE event_id IS NOT NULL AND url IS NOT NULL AND regexp_matches(url, '^(?i)https?://[^/?#\\s]+')
            AND clicked_at BETWEEN log_date::TIMESTAMPTZ - INTERVAL 6 DAY AND log_date::TIMESTAMPTZ + INTERVAL 2 DAY"""
    )
    connection.execute(
        "CREATE TABLE crawlers AS SELECT user_agent, is_crawler(user_agent) AS is_bot "
        "FROM (SELECT DISTINCT user_agent FROM parsed WHERE user_agent IS NOT NULL)"
    )
    tracking = "utm_[^=&]*|gclid|fbclid|msclkid|dclid|yclid|igshid|mc_cid|mc_eid"
    return f"""CREATE TABLE clicks AS
        WITH firsts AS (
            SELECT event_id, arg_min(line, log_hour * 10000000000 + line) AS line FROM parsed GROUP BY event_id
        ), accepted AS (SELECT parsed.* FROM parsed JOIN firsts USING (event_id, line))
        SELECT event_id, clicked_at, CASE
                WHEN regexp_matches(logged_url, '^https?://[a-z0-9.-]+/[^?#]*$') THEN logged_url
                ELSE regexp_replace(regexp_replace(regexp_replace(
                    lower(regexp_extract(logged_url, '^[^/]*//[^/?#]*')), ':(80|443)$', '')
                    || regexp_replace(regexp_replace(logged_url, '^[^/]*//[^/?#]*', ''), '#.*$', ''),
                    '(?i)([?&])(({tracking})(=[^&]*)?(&|$))+', '\\1'), '[?&]$', '') END AS url,
            CASE WHEN length(country) = 2 THEN country ELSE 'unknown' END AS country_code,
            visitor_id, referrer, user_agent, status, coalesce(is_bot, false) AS is_bot, log_date, log_hour
        FROM accepted LEFT JOIN crawlers USING (user_agent)"""

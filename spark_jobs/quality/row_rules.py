"""When a single row is not as it should be: one Column for each rule, by the name that the checks use.

The same rules count such rows in the one pass over all (``measures``) and find examples of them (``broken_rows``).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from include.check_settings import ConfiguredCheck
from include.tables import CLICKS, QUARANTINE_REASONS, UNKNOWN_COUNTRY, VISITOR_COUNT_STANDARD_ERROR, Table
from spark_jobs.aggregate.groupings import is_misplaced
from spark_jobs.ingest.countries import COUNTRY_CODES
from spark_jobs.ingest.duplicates import log_hour_number

#: So many standard errors a visitor count may be above its clicks: with more rows than there are, none is.
_SIGMAS = 5
#: What trackers send in place of an id when they have none.
NO_IDS = (
    "undefined", "null", "None", "nil", "NaN", "0", "-1", "{}", "[]", "true", "false", "-", "unknown",
    "[object Object]",
)  # fmt: skip


def click_rules() -> dict[str, Column]:
    """Rules for rows of ``clicks`` that are cheap enough to be counted on every row."""
    url = F.col("url")
    return {
        "null_keys": reduce(lambda a, b: a | b, (F.col(name).isNull() for name in CLICKS.required_columns)),
        "invalid_country_codes": ~F.col("country_code").isin([*sorted(COUNTRY_CODES), UNKNOWN_COUNTRY]),
        "unknown_country": F.col("country_code") == UNKNOWN_COUNTRY,
        # No full parse: what ingest makes of a URL has none of these.
        "malformed_urls": ~(url.startswith("https://") | url.startswith("http://"))
        | url.isin("https://", "http://")
        | url.startswith("https:///")
        | url.startswith("http:///")
        | url.contains(" ")
        | url.contains("#"),
        "ids_that_are_none": F.trim("event_id").isin(*NO_IDS),
        "invalid_statuses": ~F.col("status").between(100, 599),
        "bots": F.col("is_bot"),
    }


def click_time_rules() -> dict[str, Column]:
    """Rules for rows of ``clicks`` that are counted by hours, not by rows; these find the rows."""
    of_its_time = (F.col("click_date") == F.to_date("clicked_at")) & (F.col("click_hour") == F.hour("clicked_at"))
    click_hour_number = F.unix_date("click_date") * 24 + F.col("click_hour")
    return {
        "click_hours_not_of_their_times": ~of_its_time,
        "late": click_hour_number < log_hour_number(),
    }


def configured_rules(checks: Iterable[ConfiguredCheck]) -> dict[str, Column]:
    """The clicks that checks of a column count, by what they measure; and under ``not …`` the others."""
    rules: dict[str, Column] = {}
    for check in checks:
        if check.column is not None:
            column = F.col(check.column)
            rule = column.isNull() if check.pattern is None else column.cast("string").rlike(check.pattern)
            rules |= {check.measured: rule, f"not {check.measured}": ~F.coalesce(rule, F.lit(False))}
    return rules


def quarantine_rules() -> dict[str, Column]:
    """Rules for rows of ``quarantined_clicks``."""
    return {"quarantined": F.lit(True)} | {
        f"quarantined_{reason}": F.col("reason") == reason for reason in QUARANTINE_REASONS
    }


def count_rules(table: Table, buckets: int) -> dict[str, Column]:
    """Rules for rows of a table of counts; ``buckets`` is its number of them."""
    assert table.bucket_key is not None
    most_visitors = F.col("click_count") * (1 + _SIGMAS * VISITOR_COUNT_STANDARD_ERROR)
    return {
        "counts_below_1": F.col("click_count") < 1,
        "bots_above_clicks": F.col("bot_click_count") > F.col("click_count"),
        "visitors_above_clicks": F.col("visitor_count") > most_visitors,
        "misplaced": is_misplaced(table.bucket_key, buckets),
    }

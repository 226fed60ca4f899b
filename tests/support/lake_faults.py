"""What goes wrong in the lake after landing: in an hour's rows, or in whole tables."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from include.hours import Hour
from include.tables import (
    CLICKS,
    CLICKS_BY_COUNTRY_HOURLY,
    CLICKS_BY_URL_HOURLY,
    DUPLICATE_CLICKS,
    GROUPING_METRICS,
    INGEST_ACCOUNTING,
    PUBLISHED_CLICKS_BY_COUNTRY_HOURLY,
    PUBLISHED_CLICKS_BY_URL_HOURLY,
    QUARANTINED_CLICKS,
    Table,
)
from tests.support.fault import Fault
from tests.support.landed_faults import URLS, in_quarantine
from tests.support.planting import (
    add_again,
    change,
    cut_file,
    in_buckets,
    lose_file,
    make_null,
    publish_and,
    remove,
    retype,
    scatter,
    stored_table,
)
from tests.support.temporary_lake import TemporaryLake

_ONE = "event_id LIKE '%-3'"
_URL, _COUNTRY = f"url = '{URLS[1]}'", "country_code = 'FR'"
_LOST_CLICKS = (
    "reconciliation.lines_add_up",
    "reconciliation.accepted_are_stored",
    "reconciliation.clicks_equal_urls",
    "reconciliation.clicks_equal_countries",
)


def _overload(lake: TemporaryLake, hour: Hour) -> None:
    """As if the clicks had been moved by their URL: of counts that are combined the load is not judged."""
    stored_table(lake, GROUPING_METRICS).update(updates={"grouping": "'fields(url) over 4'"})
    changed = stored_table(lake, GROUPING_METRICS).update(
        updates={"rows": "rows * 50"}, predicate="operator = 'count_by_url' AND instance_id = 0"
    )
    assert changed["num_updated_rows"] == 1


#: Reasons of formats that no hour of the lake has.
_OF_OTHER_FORMATS = (
    *("binary_record", "part_of_line", "not_access_log", "no_header", "broken_quotes", "wrong_columns", "not_logfmt"),
)


def _quarantine_otherwise(reason: str) -> Callable[[TemporaryLake, Hour], None]:
    """Three lines in quarantine for a reason that only lines of another format have, all accounted for."""

    def plant(lake: TemporaryLake, hour: Hour) -> None:
        change(QUARANTINED_CLICKS, "true", reason=f"'{reason}'")(lake, hour)
        add_again(QUARANTINED_CLICKS, "true", line="CAST(101 AS BIGINT)")(lake, hour)
        add_again(QUARANTINED_CLICKS, "line = 101", line="CAST(102 AS BIGINT)")(lake, hour)
        change(INGEST_ACCOUNTING, "true", lines="lines + 2", quarantined="quarantined + 2")(lake, hour)

    return plant


def _of_counts(key: str, table: Table, published: Table, predicate: str) -> list[Fault]:
    """The faults of a table of counts; ``predicate`` chooses a row by its key."""
    many = {"url": "urls", "country": "countries"}[key]
    sums = (f"reconciliation.clicks_equal_{many}", "reconciliation.urls_equal_countries")
    return [
        Fault(
            f"the row of a {key} is gone from `{table.name}`",
            "critical",
            sums[0],
            f"clicks = 64, clicks_by_{key} = 56",
            sums[1:],
            plant=remove(table, predicate),
        ),
        Fault(
            f"a count per {key} is 0",
            "critical",
            f"aggregates.{key}_count_positive",
            f"smallest_{key}_count = 0",
            sums,
            plant=change(table, predicate, click_count="0", visitor_count="0"),
            has_examples=True,
        ),
        Fault(
            f"a {key} has its row twice",
            "critical",
            f"aggregates.{key}_once",
            f"{key}_rows = 9, {key}_keys = 8",
            sums,
            plant=add_again(table, predicate),
            has_examples=True,
        ),
        Fault(
            f"a {key} has more clicks by crawlers than clicks",
            "critical",
            f"aggregates.{key}_bots_within_clicks",
            f"bots_above_{key}_clicks = 1",
            plant=change(table, predicate, bot_click_count="click_count + 1"),
            has_examples=True,
        ),
        Fault(
            f"a {key} has 9 visitors with 8 clicks",
            "warning",
            f"aggregates.{key}_visitors_within_clicks",
            f"visitors_above_{key}_clicks = 1",
            plant=change(table, predicate, visitor_count="9"),
            has_examples=True,
        ),
        Fault(
            f"the bucket of a {key} was moved by hand",
            "critical",
            f"layout.{key}_buckets_are_hashes",
            f"misplaced_{key}_rows = 1",
            plant=change(table, predicate, bucket="(bucket + 1) % 4"),
            has_examples=True,
        ),
        Fault(
            f"a file of `{table.name}` is deleted from the disk",
            "critical",
            f"layout.{key}_files_are_there",
            f"lost_{key}_files = 1; part-",
            sums,
            plant=lose_file(table),
        ),
        Fault(
            f"`{table.name}` has a file for each row",
            "warning",
            f"layout.{key}_files",
            f"{key}_files = 8",
            plant=scatter(table, str(table.bucket_key), len(URLS)),
        ),
        Fault(
            f"a published count per {key} was changed by hand",
            "critical",
            f"reconciliation.published_{key}_equals_computed",
            "published 8 rows with 65 clicks, computed 8 rows with 64 clicks",
            plant=publish_and(change(published, predicate, click_count="click_count + 1")),
        ),
    ]


#: What goes wrong in the lake afterwards: each in an hour of its own.
PLANTED = [
    Fault(
        "the clicks of an hour are in 6 files",
        "warning",
        "layout.clicks_files",
        "clicks_files = 6",
        plant=scatter(CLICKS, "event_id", 6),
    ),
    Fault(
        "a required column is null",
        "critical",
        "clicks.no_null_keys",
        "null_keys = 1",
        plant=make_null(CLICKS, "url", _ONE),
        has_examples=True,
    ),
    Fault(
        "a click is there twice",
        "critical",
        "clicks.no_event_id_twice",
        "duplicate_event_ids = 1",
        _LOST_CLICKS,
        plant=add_again(CLICKS, _ONE),
        has_examples=True,
    ),
    Fault(
        "a click's time was changed, but not its click hour",
        "critical",
        "clicks.click_hour_is_of_its_time",
        "click_hours_not_of_their_times = 1",
        plant=change(CLICKS, _ONE, clicked_at="clicked_at - INTERVAL '30 minutes'"),
        has_examples=True,
    ),
    Fault(
        "a click is of last week",
        "critical",
        "clicks.not_too_old",
        "oldest_click_hours_before = 239.95",
        _LOST_CLICKS[2:],
        plant=change(
            CLICKS,
            _ONE,
            clicked_at="clicked_at - INTERVAL '10 days'",
            click_date="click_date - INTERVAL '10 days'",
        ),
    ),
    Fault(
        "a country is 'ZZZ'",
        "critical",
        "clicks.known_countries",
        "invalid_country_codes = 1",
        plant=change(CLICKS, _ONE, country_code="'ZZZ'"),
        has_examples=True,
    ),
    Fault(
        "a URL has no scheme",
        "critical",
        "clicks.urls_have_a_shape",
        "malformed_urls = 1",
        plant=change(CLICKS, _ONE, url="'shop.test/7'"),
        has_examples=True,
    ),
    *(in_quarantine(reason, None, plant=_quarantine_otherwise(reason)) for reason in _OF_OTHER_FORMATS),
    Fault(
        "the accounting says a line more",
        "critical",
        "reconciliation.lines_add_up",
        "lines = 67, accounted_lines = 66",
        plant=change(INGEST_ACCOUNTING, "true", lines="lines + 1"),
    ),
    Fault(
        "the accounting says a click more",
        "critical",
        "reconciliation.accepted_are_stored",
        "accepted = 65, stored_clicks = 64",
        plant=change(INGEST_ACCOUNTING, "true", accepted="accepted + 1"),
    ),
    Fault(
        "a duplicate is gone from `duplicate_clicks`",
        "warning",
        "reconciliation.duplicates_are_stored",
        "duplicates = 1, stored_duplicates = 0",
        plant=remove(DUPLICATE_CLICKS, "true"),
    ),
    Fault(
        "a file of `clicks` is deleted from the disk",
        "critical",
        "layout.clicks_files_are_there",
        "lost_clicks_files = 1; part-",
        _LOST_CLICKS,
        plant=lose_file(CLICKS),
    ),
    Fault(
        "a file of `quarantined_clicks` is cut short",
        "critical",
        "layout.quarantined_files_are_there",
        "lost_quarantined_files = 1; part-",
        _LOST_CLICKS[:1],
        plant=cut_file(QUARANTINED_CLICKS),
    ),
    Fault(
        "a country has a click more",
        "critical",
        "reconciliation.urls_equal_countries",
        "clicks_by_url = 64, clicks_by_country = 65",
        ("reconciliation.clicks_equal_countries",),
        plant=change(CLICKS_BY_COUNTRY_HOURLY, _COUNTRY, click_count="click_count + 1"),
    ),
    *_of_counts("url", CLICKS_BY_URL_HOURLY, PUBLISHED_CLICKS_BY_URL_HOURLY, _URL),
    *_of_counts("country", CLICKS_BY_COUNTRY_HOURLY, PUBLISHED_CLICKS_BY_COUNTRY_HOURLY, _COUNTRY),
    Fault(
        "one instance counted most clicks",
        "warning",
        "load.skew",
        "skew = 3.7",
        plant=_overload,
    ),
    Fault(
        "a click is of next week",
        "critical",
        "clicks.not_too_new",
        "newest_click_minutes_after = 14343",
        _LOST_CLICKS[2:],
        plant=change(
            CLICKS,
            _ONE,
            clicked_at="clicked_at + INTERVAL '10 days'",
            click_date="click_date + INTERVAL '10 days'",
        ),
    ),
]

_URLS_TABLE, _COUNTRIES_TABLE = CLICKS_BY_URL_HOURLY, CLICKS_BY_COUNTRY_HOURLY


def _further_number(key: str, table: Table, predicate: str) -> Fault:
    return Fault(
        f"`{table.name}` has rows of one {key} in 7 buckets, the others in 4",
        "critical",
        f"layout.{key}_one_number_of_buckets",
        f"{key}_fewest_buckets = 4, {key}_most_buckets = 7",
        plant=in_buckets(table, 7, predicate),
    )


def _other_key_type(key: str, table: Table) -> Fault:
    return Fault(
        f"`{table.name}` has its key as bytes",
        "critical",
        f"layout.{key}_type",
        f"{key}_key_type = BINARY",
        plant=retype(table, str(table.bucket_key), pa.binary()),
    )


#: What is wrong with whole tables: the faults of a round are planted together, and seen in every hour.
TABLE_WIDE = [
    [
        _further_number("url", _URLS_TABLE, _URL),
        _further_number("country", _COUNTRIES_TABLE, _COUNTRY),
        Fault(
            "a log hour was never ingested",
            "warning",
            "reconciliation.hour_is_there",
            "is_missing = 1; it was never ingested",
        ),
    ],
    [
        _other_key_type("url", _URLS_TABLE),
        _other_key_type("country", _COUNTRIES_TABLE),
        Fault(
            "`clicks` has its status as BIGINT",
            "critical",
            "clicks.column_types",
            "columns_of_other_types = 1; status is BIGINT",
            plant=retype(CLICKS, "status", pa.int64()),
        ),
        Fault(
            f"`{_COUNTRIES_TABLE.name}` has another number of buckets",
            "critical",
            "layout.country_same_buckets",
            "url_fewest_buckets = 4, country_fewest_buckets = 7",
            plant=in_buckets(_COUNTRIES_TABLE, 7),
        ),
    ],
]

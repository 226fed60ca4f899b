"""Every fault that the tests plant in a real small lake, and the checks that must then fail, and no others.

``python -m tests.support.planted_faults`` writes the tables in ``docs/reference/checks.md``; a test compares them with
this list.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from expectations.checks import Check
from expectations.suites import click_hour_checks, grouping_checks, live, log_hour_checks, schema_drift, volume
from include.log_hours import Hour
from include.settings import REPOSITORY, PipelineSettings
from include.sources import JsonFields, Source
from include.table_docs import fill_blocks
from include.tables import (
    AGGREGATES,
    BUCKETS_PROPERTY,
    CLICKS,
    CLICKS_BY_COUNTRY_HOURLY,
    CLICKS_BY_URL_HOURLY,
    DUPLICATE_CLICKS,
    GROUPING_METRICS,
    INGEST_ACCOUNTING,
    PARTITIONER_PROPERTY,
    PUBLISHED_CLICKS_BY_COUNTRY_HOURLY,
    PUBLISHED_CLICKS_BY_URL_HOURLY,
    QUARANTINED_CLICKS,
    Table,
)
from tests.support.day_faults import DAY_FAULTS
from tests.support.fault import Fault, Lines
from tests.support.history_faults import HISTORY_FAULTS
from tests.support.live_faults import LIVE_FAULTS
from tests.support.temporary_lake import TemporaryLake, click

PAGE = REPOSITORY / "docs" / "reference" / "checks.md"
START = Hour.parse("2026-03-01T00")

#: Two in each of four buckets, so that all instances have the same load.
URLS = [f"http://shop.test/{n}" for n in (0, 1, 2, 7, 6, 8, 3, 14)]
COUNTRIES = ["DE", "FR", "ES", "IT", "GB", "US", "PL", "NL"]
CLICKS_AN_HOUR = 64
CRAWLER = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"

#: With these a few files are many, and there are checks of the source's own.
PIPELINE = "[thresholds]\nfiles_per_partition = { warning = 5 }\n[schema_drift]\nmin_hours = 52\n"
SOURCE_CHECKS = r"""
[[sources.web.checks]]
name = "referrers_are_logged"
metric = "null_share"
column = "referrer"
highest = 0.5
reason = "Referrers say where clicks come from."
[[sources.web.checks]]
name = "urls_are_of_the_shop"
metric = "matching_share"
column = "url"
pattern = '^http://shop\.test/'
lowest = 0.9
severity = "critical"
reason = "The tracker runs on another page."
"""


def line(hour: Hour, number: int, **fields: Any) -> bytes:
    """The click of that number of an hour, as it lands."""
    ts = f"{hour}:{number % 60:02d}:00Z"
    given = {
        "url": URLS[number % len(URLS)],
        "geo": {"country": COUNTRIES[number % len(COUNTRIES)]},
        "visitor_id": f"visitor {number}",
        "referrer": "http://referrer.test/",
        "user_agent": "Mozilla/5.0",
        "status": 200,
    } | fields
    return click(given.pop("event_id", f"{hour}-{number}"), given.pop("ts", ts), **given)


def fine_lines(hour: Hour) -> Lines:
    """An hour without a fault: clicks, one of them sent twice, and a line that is no click."""
    lines = [line(hour, number) for number in range(CLICKS_AN_HOUR)]
    return [*lines, lines[0], b"nonsense\n"]


def _with(count: int, **fields: Any) -> Callable[[Hour], Lines]:
    """The first clicks of the hour with other fields."""

    def lines(hour: Hour) -> Lines:
        others = {name: value(hour) if callable(value) else value for name, value in fields.items()}
        return [line(hour, n, **others) if n < count else line(hour, n) for n in range(CLICKS_AN_HOUR)]

    return lines


def _and(*bad: bytes) -> Callable[[Hour], Lines]:
    """The hour's clicks, and these lines."""
    return lambda hour: [*(line(hour, number) for number in range(CLICKS_AN_HOUR)), *(text + b"\n" for text in bad)]


def _and_clicks(count: int, **fields: Any) -> Callable[[Hour], Lines]:
    """The hour's clicks, and so many with other fields."""
    return lambda hour: [
        line(hour, number, **(fields if number >= CLICKS_AN_HOUR else {})) for number in range(CLICKS_AN_HOUR + count)
    ]


# --- planting in the lake: without Spark, in milliseconds -----------------------------------------


def _stored(lake: TemporaryLake, table: Table) -> DeltaTable:
    return DeltaTable(lake.settings.lake / table.name)


def _of_hour(table: Table, hour: Hour) -> str:
    day, number = table.partitioned_by[-2:]
    return f"{day} = '{hour.day}' AND {number} = {hour.hour}"


def _change(table: Table, where: str, **values: str) -> Callable[[TemporaryLake, Hour], None]:
    """Give columns of an hour's rows other values, SQL expressions."""

    def plant(lake: TemporaryLake, hour: Hour) -> None:
        changed = _stored(lake, table).update(updates=values, predicate=f"{_of_hour(table, hour)} AND {where}")
        assert changed["num_updated_rows"] > 0

    return plant


def _remove(table: Table, where: str) -> Callable[[TemporaryLake, Hour], None]:
    def plant(lake: TemporaryLake, hour: Hour) -> None:
        assert _stored(lake, table).delete(f"{_of_hour(table, hour)} AND {where}")["num_deleted_rows"] > 0

    return plant


def _again(table: Table, where: str, **values: str) -> Callable[[TemporaryLake, Hour], None]:
    """Add rows of an hour once more, with other values of some columns."""

    def plant(lake: TemporaryLake, hour: Hour) -> None:
        columns = ", ".join(f"{values[name]} AS {name}" if name in values else name for name in table.column_names)
        path = lake.settings.lake / table.name
        rows = lake.spark.sql(f"SELECT {columns} FROM delta.`{path}` WHERE {_of_hour(table, hour)} AND {where}")
        rows.write.format("delta").mode("append").save(str(path))

    return plant


def _nullable(table: Table, column: str, where: str) -> Callable[[TemporaryLake, Hour], None]:
    """Take a constraint away, and make the column null."""

    def plant(lake: TemporaryLake, hour: Hour) -> None:
        path = f"delta.`{lake.settings.lake / table.name}`"
        lake.spark.sql(f"ALTER TABLE {path} ALTER COLUMN {column} DROP NOT NULL").collect()
        lake.spark.sql(f"UPDATE {path} SET {column} = NULL WHERE {_of_hour(table, hour)} AND {where}").collect()

    return plant


def _file(lake: TemporaryLake, table: Table, hour: Hour) -> Path:
    return Path(sorted(_stored(lake, table).file_uris(file_pruning_predicate=_of_hour(table, hour)))[0])


def _lose_file(table: Table) -> Callable[[TemporaryLake, Hour], None]:
    return lambda lake, hour: _file(lake, table, hour).unlink()


def _cut_file(table: Table) -> Callable[[TemporaryLake, Hour], None]:
    def plant(lake: TemporaryLake, hour: Hour) -> None:
        file = _file(lake, table, hour)
        file.write_bytes(file.read_bytes()[:-100])

    return plant


def _scatter(table: Table, key: str, files: int) -> Callable[[TemporaryLake, Hour], None]:
    """Write the rows of an hour as so many files."""

    def plant(lake: TemporaryLake, hour: Hour) -> None:
        path, of_hour = lake.settings.lake / table.name, _of_hour(table, hour)
        rows = lake.spark.sql(f"SELECT * FROM delta.`{path}` WHERE {of_hour}")
        spread = rows.repartitionByRange(files, key)
        spread.write.format("delta").mode("overwrite").option("replaceWhere", of_hour).save(str(path))

    return plant


def _publish_and(plant_in: Callable[[TemporaryLake, Hour], None]) -> Callable[[TemporaryLake, Hour], None]:
    """Publish the hour, say so, and plant the fault after that."""

    def plant(lake: TemporaryLake, hour: Hour) -> None:
        from spark_jobs.lake.lake import Lake, click_hours_predicate

        stored = Lake(lake.spark, lake.settings)
        for computed, published in AGGREGATES.items():
            stored.replace(published, stored.read_click_hours(computed, [hour]), click_hours_predicate([hour]))
        lake.say_published(hour)
        plant_in(lake, hour)

    return plant


def _overload(lake: TemporaryLake, hour: Hour) -> None:
    """As if the clicks had been moved by their URL: of counts that are combined the load is not judged."""
    _stored(lake, GROUPING_METRICS).update(updates={"grouping": "'fields(url) over 4'"})
    changed = _stored(lake, GROUPING_METRICS).update(
        updates={"rows": "rows * 50"}, predicate="operator = 'count_by_url' AND instance_id = 0"
    )
    assert changed["num_updated_rows"] == 1


def _quarantine_otherwise(lake: TemporaryLake, hour: Hour) -> None:
    """Three lines in quarantine for a reason that only access logs have, all accounted for."""
    _change(QUARANTINED_CLICKS, "true", reason="'not_access_log'")(lake, hour)
    _again(QUARANTINED_CLICKS, "true", line="CAST(101 AS BIGINT)")(lake, hour)
    _again(QUARANTINED_CLICKS, "line = 101", line="CAST(102 AS BIGINT)")(lake, hour)
    _change(INGEST_ACCOUNTING, "true", lines="lines + 2", quarantined="quarantined + 2")(lake, hour)


_ONE = "event_id LIKE '%-3'"
_URL, _COUNTRY = f"url = '{URLS[1]}'", "country_code = 'FR'"
_LOST_CLICKS = (
    "reconciliation.lines_add_up",
    "reconciliation.accepted_are_stored",
    "reconciliation.clicks_equal_urls",
    "reconciliation.clicks_equal_countries",
)


def set_property(table: Table, name: str, value: str | None) -> Callable[[TemporaryLake, Hour], None]:
    """Set a table property, or take it away."""

    def plant(lake: TemporaryLake, hour: Hour) -> None:
        change = f"SET TBLPROPERTIES ('{name}' = '{value}')" if value else f"UNSET TBLPROPERTIES ('{name}')"
        lake.spark.sql(f"ALTER TABLE delta.`{lake.settings.lake / table.name}` {change}").collect()

    return plant


def _retype(table: Table, column: str, kind: pa.DataType) -> Callable[[TemporaryLake, Hour], None]:
    """Write the table again, with a column of another type and this hour's rows alone."""

    def plant(lake: TemporaryLake, hour: Hour) -> None:
        day, number = table.partitioned_by[-2:]
        of_hour = [(day, "=", hour.day), (number, "=", hour.hour)]
        stored = _stored(lake, table).to_pyarrow_table(filters=of_hour)
        place = stored.column_names.index(column)
        other = stored.set_column(place, column, stored[column].cast(kind))
        write_deltalake(
            lake.settings.lake / table.name,
            other,
            mode="overwrite",
            schema_mode="overwrite",
            partition_by=list(table.partitioned_by),
        )

    return plant


def _of_counts(key: str, table: Table, published: Table, one: str) -> list[Fault]:
    """The faults of a table of counts; ``one`` is a row's key."""
    many = {"url": "urls", "country": "countries"}[key]
    sums = (f"reconciliation.clicks_equal_{many}", "reconciliation.urls_equal_countries")
    return [
        Fault(
            f"the row of a {key} is gone from `{table.name}`",
            "critical",
            sums[0],
            f"clicks = 64, clicks_by_{key} = 56",
            sums[1:],
            plant=_remove(table, one),
        ),
        Fault(
            f"a count per {key} is 0",
            "critical",
            f"aggregates.{key}_count_positive",
            f"smallest_{key}_count = 0",
            sums,
            plant=_change(table, one, click_count="0", visitor_count="0"),
            has_examples=True,
        ),
        Fault(
            f"a {key} has its row twice",
            "critical",
            f"aggregates.{key}_once",
            f"{key}_rows = 9, {key}_keys = 8",
            sums,
            plant=_again(table, one),
            has_examples=True,
        ),
        Fault(
            f"a {key} has more clicks by crawlers than clicks",
            "critical",
            f"aggregates.{key}_bots_within_clicks",
            f"bots_above_{key}_clicks = 1",
            plant=_change(table, one, bot_click_count="click_count + 1"),
            has_examples=True,
        ),
        Fault(
            f"a {key} has 9 visitors with 8 clicks",
            "warning",
            f"aggregates.{key}_visitors_within_clicks",
            f"visitors_above_{key}_clicks = 1",
            plant=_change(table, one, visitor_count="9"),
            has_examples=True,
        ),
        Fault(
            f"the bucket of a {key} was moved by hand",
            "critical",
            f"layout.{key}_buckets_are_hashes",
            f"misplaced_{key}_rows = 1",
            plant=_change(table, one, bucket="(bucket + 1) % 4"),
            has_examples=True,
        ),
        Fault(
            f"a file of `{table.name}` is deleted from the disk",
            "critical",
            f"layout.{key}_files_are_there",
            f"lost_{key}_files = 1; part-",
            sums,
            plant=_lose_file(table),
        ),
        Fault(
            f"`{table.name}` has a file for each row",
            "warning",
            f"layout.{key}_files",
            f"{key}_files = 8",
            plant=_scatter(table, str(table.bucket_key), len(URLS)),
        ),
        Fault(
            f"a published count per {key} was changed by hand",
            "critical",
            f"reconciliation.published_{key}_equals_computed",
            "published 8 rows with 65 clicks, computed 8 rows with 64 clicks",
            plant=_publish_and(_change(published, one, click_count="click_count + 1")),
        ),
    ]


_UNREADABLE: dict[str, tuple[bytes, ...]] = {
    "line_too_long": (b"x" * 65537,) * 3,
    "not_utf8": (b'{"url": "\xff"}',) * 3,
    "blank": (b" ",) * 3,
    "not_json": (b"nonsense",) * 3,
}
_INCOMPLETE: dict[str, dict[str, Any]] = {
    "missing_event_id": {"event_id": None},
    "missing_time": {"ts": None},
    "bad_time": {"ts": "noon"},
    "time_out_of_range": {"ts": "2020-01-01T00:00:00Z"},
    "missing_url": {"url": ""},
    "bad_url": {"url": "ftp://shop.test/"},
}


def _in_quarantine(reason: str, lines: Callable[[Hour], Lines] | None, **more: Any) -> Fault:
    return Fault(
        f"3 lines of an hour are in quarantine as `{reason}`",
        "warning",
        f"clicks.quarantined_{reason}_share",
        f"quarantined_{reason}_share = 0.04",
        lines=lines,
        has_examples=True,
        **more,
    )


#: What lands wrongly: each in an hour of its own.
LANDED = [
    Fault(
        "a log hour never landed",
        "warning",
        "reconciliation.hour_is_there",
        "is_missing = 1; nothing had landed, not even _SUCCESS, when its grace time was over",
        files=0,
    ),
    Fault(
        "a log hour was not closed by _SUCCESS",
        "warning",
        "reconciliation.hour_is_complete",
        "files_not_closed_or_damaged = 1; not closed by _SUCCESS",
        is_closed=False,
    ),
    Fault(
        "a folder lies among the files of a log hour",
        "warning",
        "reconciliation.files_are_read",
        "files_not_read = 1; part.log",
        folder="part.log",
    ),
    *(_in_quarantine(reason, _and(*bad)) for reason, bad in _UNREADABLE.items()),
    *(_in_quarantine(reason, _and_clicks(3, **bad)) for reason, bad in _INCOMPLETE.items()),
    Fault(
        "4 of 68 lines are in quarantine, for two reasons",
        "warning",
        "clicks.quarantined_share",
        "quarantined_share = 0.0588235",
        lines=_and(b"nonsense", b"nonsense", b" ", b" "),
        has_examples=True,
    ),
    Fault(
        "a source changed its format: most lines are malformed",
        "critical",
        "clicks.quarantined_share_critical",
        "quarantined_share = 0.555556",
        ("clicks.quarantined_share", "clicks.quarantined_not_json_share"),
        lines=_and(*(b"nonsense",) * 80),
        has_examples=True,
    ),
    Fault(
        "20 of 64 clicks are of the hour before",
        "warning",
        "clicks.late_share",
        "late_share = 0.3125",
        lines=_with(20, ts=lambda hour: f"{hour.plus(-1)}:30:00Z"),
        has_examples=True,
    ),
    Fault(
        "a tracker sends 'undefined' as the id",
        "warning",
        "clicks.event_ids_are_ids",
        "ids_that_are_none = 1",
        lines=_with(1, event_id="undefined"),
        has_examples=True,
    ),
    Fault(
        "33 of 64 clicks have a country that is none",
        "warning",
        "clicks.unknown_country_share",
        "unknown_country_share = 0.515625",
        lines=_with(33, geo={"country": "ZZZ"}),
        has_examples=True,
    ),
    Fault(
        "33 of 64 clicks are by a crawler",
        "warning",
        "clicks.bot_share",
        "bot_share = 0.515625",
        lines=_with(33, user_agent=CRAWLER),
        has_examples=True,
    ),
    Fault(
        "a click has the status 42",
        "warning",
        "clicks.invalid_status_share",
        "invalid_status_share = 0.015625",
        lines=_with(1, status=42),
        has_examples=True,
    ),
    Fault(
        "most clicks are on one URL",
        "warning",
        "aggregates.top_url_share",
        "top_url_share = 0.671875",
        lines=_with(40, url=URLS[0]),
    ),
    Fault(
        "the referrer is no longer logged (a check of the source's own)",
        "warning",
        "clicks.configured_referrers_are_logged",
        "null_share(referrer) = 0.515625",
        lines=_with(33, referrer=None),
        has_examples=True,
    ),
    Fault(
        "clicks on another host (a check of the source's own)",
        "critical",
        "clicks.configured_urls_are_of_the_shop",
        "= 0.890625",
        lines=_with(7, url="http://other.test/"),
        has_examples=True,
    ),
]

#: What goes wrong in the lake afterwards: each in an hour of its own.
PLANTED = [
    Fault(
        "the clicks of an hour are in 6 files",
        "warning",
        "layout.clicks_files",
        "clicks_files = 6",
        plant=_scatter(CLICKS, "event_id", 6),
    ),
    Fault(
        "a required column is null",
        "critical",
        "clicks.no_null_keys",
        "null_keys = 1",
        plant=_nullable(CLICKS, "url", _ONE),
        has_examples=True,
    ),
    Fault(
        "a click is there twice",
        "critical",
        "clicks.no_event_id_twice",
        "duplicate_event_ids = 1",
        _LOST_CLICKS,
        plant=_again(CLICKS, _ONE),
        has_examples=True,
    ),
    Fault(
        "a click's time was changed, but not its click hour",
        "critical",
        "clicks.click_hour_is_of_its_time",
        "click_hours_not_of_their_times = 1",
        plant=_change(CLICKS, _ONE, clicked_at="clicked_at - INTERVAL '30 minutes'"),
        has_examples=True,
    ),
    Fault(
        "a click is of last week",
        "critical",
        "clicks.not_too_old",
        "oldest_click_hours_before = 239.95",
        _LOST_CLICKS[2:],
        plant=_change(
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
        plant=_change(CLICKS, _ONE, country_code="'ZZZ'"),
        has_examples=True,
    ),
    Fault(
        "a URL has no scheme",
        "critical",
        "clicks.urls_have_a_shape",
        "malformed_urls = 1",
        plant=_change(CLICKS, _ONE, url="'shop.test/7'"),
        has_examples=True,
    ),
    _in_quarantine("not_access_log", None, plant=_quarantine_otherwise),
    Fault(
        "the accounting says a line more",
        "critical",
        "reconciliation.lines_add_up",
        "lines = 67, accounted_lines = 66",
        plant=_change(INGEST_ACCOUNTING, "true", lines="lines + 1"),
    ),
    Fault(
        "the accounting says a click more",
        "critical",
        "reconciliation.accepted_are_stored",
        "accepted = 65, stored_clicks = 64",
        plant=_change(INGEST_ACCOUNTING, "true", accepted="accepted + 1"),
    ),
    Fault(
        "a duplicate is gone from `duplicate_clicks`",
        "warning",
        "reconciliation.duplicates_are_stored",
        "duplicates = 1, stored_duplicates = 0",
        plant=_remove(DUPLICATE_CLICKS, "true"),
    ),
    Fault(
        "a file of `clicks` is deleted from the disk",
        "critical",
        "layout.clicks_files_are_there",
        "lost_clicks_files = 1; part-",
        _LOST_CLICKS,
        plant=_lose_file(CLICKS),
    ),
    Fault(
        "a file of `quarantined_clicks` is cut short",
        "critical",
        "layout.quarantined_files_are_there",
        "lost_quarantined_files = 1; part-",
        _LOST_CLICKS[:1],
        plant=_cut_file(QUARANTINED_CLICKS),
    ),
    Fault(
        "a country has a click more",
        "critical",
        "reconciliation.urls_equal_countries",
        "clicks_by_url = 64, clicks_by_country = 65",
        ("reconciliation.clicks_equal_countries",),
        plant=_change(CLICKS_BY_COUNTRY_HOURLY, _COUNTRY, click_count="click_count + 1"),
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
        plant=_change(
            CLICKS,
            _ONE,
            clicked_at="clicked_at + INTERVAL '10 days'",
            click_date="click_date + INTERVAL '10 days'",
        ),
    ),
]

_URLS_TABLE, _COUNTRIES_TABLE = CLICKS_BY_URL_HOURLY, CLICKS_BY_COUNTRY_HOURLY


def _other_partitioner(key: str, table: Table) -> Fault:
    return Fault(
        f"`{table.name}` has buckets of another partitioner",
        "critical",
        f"layout.{key}_partitioner",
        f"{key}_partitioner = md5",
        (f"layout.{key}_partitioner_stated",),
        plant=set_property(table, PARTITIONER_PROPERTY, "md5"),
    )


def _no_partitioner(key: str, table: Table) -> Fault:
    return Fault(
        f"`{table.name}` was made by a version that stated no partitioner",
        "warning",
        f"layout.{key}_partitioner_stated",
        f"{key}_partitioner = not stated",
        plant=set_property(table, PARTITIONER_PROPERTY, None),
    )


def _other_key_type(key: str, table: Table) -> Fault:
    return Fault(
        f"`{table.name}` has its key as bytes",
        "critical",
        f"layout.{key}_type",
        f"{key}_key_type = BINARY",
        plant=_retype(table, str(table.bucket_key), pa.binary()),
    )


#: What is wrong with whole tables: the faults of a round are planted together, and seen in every hour.
TABLE_WIDE = [
    [
        _other_partitioner("url", _URLS_TABLE),
        _no_partitioner("country", _COUNTRIES_TABLE),
        Fault(
            "a log hour was never ingested",
            "warning",
            "reconciliation.hour_is_there",
            "is_missing = 1; it was never ingested",
        ),
    ],
    [_other_partitioner("country", _COUNTRIES_TABLE), _no_partitioner("url", _URLS_TABLE)],
    [
        _other_key_type("url", _URLS_TABLE),
        _other_key_type("country", _COUNTRIES_TABLE),
        Fault(
            "`clicks` has its status as BIGINT",
            "critical",
            "clicks.column_types",
            "columns_of_other_types = 1; status is BIGINT",
            plant=_retype(CLICKS, "status", pa.int64()),
        ),
        Fault(
            f"`{_COUNTRIES_TABLE.name}` states another number of buckets",
            "critical",
            "layout.country_same_buckets",
            "url_buckets = 4, country_buckets = 7",
            ("layout.country_buckets_are_hashes",),
            plant=set_property(_COUNTRIES_TABLE, BUCKETS_PROPERTY, "7"),
        ),
    ],
]

FAULTS = [
    *LANDED,
    *PLANTED,
    *(fault for faults in TABLE_WIDE for fault in faults),
    *DAY_FAULTS,
    *HISTORY_FAULTS,
    *LIVE_FAULTS,
]


def all_checks() -> dict[str, tuple[str, Check]]:
    """Every built-in check by its name, with what it is of: ``log hour``, ``click hour`` or ``operator``."""
    source = Source(name="web", format="json", fields=JsonFields(time="ts", url="url"))
    settings = PipelineSettings()
    by_kind = {
        "log hour": [
            *log_hour_checks(settings, source),
            *volume.log_hour_checks(settings.volume),
            *schema_drift.log_hour_checks(settings.schema_drift),
        ],
        "click hour": [
            *click_hour_checks(settings),
            *live.click_hour_checks(settings.counts),
            *volume.click_hour_checks(settings.volume),
        ],
        "operator": grouping_checks(settings),
    }
    return {f"{check.suite}.{check.name}": (kind, check) for kind, checks in by_kind.items() for check in checks}


def kind_of(name: str) -> str:
    """What a check is of; checks that a source adds are of its log hours."""
    return "log hour" if ".configured_" in name else all_checks()[name][0]


def list_faults() -> str:
    """A Markdown table with one row per fault."""
    lines = ["| planted | of | check that fails | severity | and with it |", "| --- | --- | --- | --- | --- |"]
    for fault in FAULTS:
        also = ", ".join(f"`{name}`" for name in fault.also)
        lines.append(f"| {fault.what} | {kind_of(fault.check)} | `{fault.check}` | {fault.severity} | {also} |")
    return "\n".join(lines)


def list_checks() -> str:
    """A Markdown table with one row per built-in check, and its reason."""
    lines = ["| check | of | severity | what must hold | why, and what to do |", "| --- | --- | --- | --- | --- |"]
    for name, (kind, check) in all_checks().items():
        lines.append(f"| `{name}` | {kind} | {check.severity} | {check.holds} | {check.reason} |")
    return "\n".join(lines)


def page() -> str:
    """What ``docs/reference/checks.md`` should be."""
    return fill_blocks(PAGE.read_text(encoding="utf-8"), {"checks": list_checks(), "faults": list_faults()})


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

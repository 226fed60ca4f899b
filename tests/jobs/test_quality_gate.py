"""A planted fault makes exactly the right critical check fail, and then nothing is published."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from include.errors import ClickmillError, QualityError
from include.tables import (
    CLICKS,
    CLICKS_BY_COUNTRY_HOURLY,
    CLICKS_BY_URL_HOURLY,
    INGEST_ACCOUNTING,
    PUBLISHED_CLICKS_BY_COUNTRY_HOURLY,
    PUBLISHED_CLICKS_BY_URL_HOURLY,
    QUALITY_RESULTS,
    Table,
)
from tests.jobs.temporary_lake import TemporaryLake, click

pytestmark = pytest.mark.spark

HOUR = "2026-03-01T05"
PUBLISHED = (PUBLISHED_CLICKS_BY_URL_HOURLY, PUBLISHED_CLICKS_BY_COUNTRY_HOURLY)

LINES_ADD_UP = "lines = clicks stored + duplicates + lines in quarantine"
ACCEPTED_ARE_STORED = "accepted lines = rows in clicks"
NO_ID_TWICE = "no event id is accepted twice within the lateness window"
COUNTRIES_ARE_KNOWN = "every country code is ISO 3166-1 alpha-2 or 'unknown'"
URLS_ARE_COUNTRIES = "clicks summed over URLs = clicks summed over countries"
CLICKS_ARE_URLS = "rows in clicks = clicks summed over URLs"
COUNT_IS_POSITIVE = "every click_count per url is at least 1"
ONE_ROW_A_URL = "no url has two rows in a click hour, so none has two buckets"
BUCKET_IS_HASH = "every bucket is what the url's hash says for the table's number of buckets"
BOTS_ARE_A_PART = "crawlers' clicks per country are at most all clicks"

#: A statement that plants the fault in {table}, and the critical expectations that must fail for it.
FAULTS: dict[str, tuple[Table, str, set[str]]] = {
    "a URL's row is gone": (
        CLICKS_BY_URL_HOURLY, "DELETE FROM {table} WHERE url LIKE '%/b'", {URLS_ARE_COUNTRIES, CLICKS_ARE_URLS}
    ),
    "a country's row is gone": (
        CLICKS_BY_COUNTRY_HOURLY, "DELETE FROM {table} WHERE country_code = 'FR'", {URLS_ARE_COUNTRIES}
    ),
    "a bucket is another": (
        CLICKS_BY_URL_HOURLY, "UPDATE {table} SET bucket = (bucket + 1) % 4 WHERE url LIKE '%/b'", {BUCKET_IS_HASH}
    ),
    "a URL has two rows": (
        CLICKS_BY_URL_HOURLY,
        "INSERT INTO {table} SELECT * FROM {table} WHERE url LIKE '%/b'",
        {ONE_ROW_A_URL, URLS_ARE_COUNTRIES, CLICKS_ARE_URLS},
    ),
    "a count is 0": (
        CLICKS_BY_URL_HOURLY,
        "UPDATE {table} SET click_count = 0 WHERE url LIKE '%/b'",
        {COUNT_IS_POSITIVE, URLS_ARE_COUNTRIES, CLICKS_ARE_URLS},
    ),
    "more crawlers than clicks": (
        CLICKS_BY_COUNTRY_HOURLY,
        "UPDATE {table} SET bot_click_count = click_count + 1 WHERE country_code = 'FR'",
        {BOTS_ARE_A_PART},
    ),
    "an event id is there twice": (
        CLICKS,
        "INSERT INTO {table} SELECT * FROM {table} WHERE event_id = 'e0'",
        {NO_ID_TWICE, LINES_ADD_UP, ACCEPTED_ARE_STORED, CLICKS_ARE_URLS},
    ),
    "a country that is none": (
        CLICKS, "UPDATE {table} SET country_code = 'XX' WHERE event_id = 'e0'", {COUNTRIES_ARE_KNOWN}
    ),
    "the account says more lines": (INGEST_ACCOUNTING, "UPDATE {table} SET lines = lines + 1", {LINES_ADD_UP}),
    "the account says more clicks": (
        INGEST_ACCOUNTING, "UPDATE {table} SET accepted = accepted + 1", {ACCEPTED_ARE_STORED}
    ),
}  # fmt: skip


def _land(lake: TemporaryLake, hour: str = HOUR) -> None:
    countries, urls = ("DE", "FR", "US"), ("a", "b", "c")
    lines = [
        click(f"e{n}", f"{hour}:{n:02d}:00Z", f"http://shop.test/{urls[n % 3]}", geo={"country": countries[n // 4]})
        for n in range(12)
    ]
    lake.land(hour, {"a.json": b"".join([*lines, lines[0], b"nonsense\n"])})


@pytest.fixture(scope="module")
def published(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    lake = make_lake("gate")
    _land(lake)
    lake.run_all(HOUR)
    return lake


@pytest.fixture
def mended(published: TemporaryLake) -> Iterator[TemporaryLake]:
    """The published lake; whatever a test did to it is undone after."""
    versions = {table: published.commits(table) - 1 for table in (CLICKS, INGEST_ACCOUNTING, *_AGGREGATES)}
    yield published
    for table, version in versions.items():
        if published.commits(table) - 1 != version:
            path = published.settings.lake / table.name
            published.spark.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF {version}").collect()


_AGGREGATES = (CLICKS_BY_URL_HOURLY, CLICKS_BY_COUNTRY_HOURLY)


def _plant(lake: TemporaryLake, table: Table, statement: str) -> None:
    lake.spark.sql(statement.format(table=f"delta.`{lake.settings.lake / table.name}`")).collect()


def _failed_in_last_run(lake: TemporaryLake) -> dict[str, set[str]]:
    results = lake.rows(QUALITY_RESULTS, without=())
    newest = max(row["validated_at"] for row in results)
    failed: dict[str, set[str]] = {"critical": set(), "warning": set()}
    for row in results:
        if row["validated_at"] == newest and not row["success"]:
            failed[row["severity"]].add(row["expectation"])
    return failed


def test_fine_hour_passes_every_critical_check(published: TemporaryLake) -> None:
    assert _failed_in_last_run(published)["critical"] == set()
    assert {row["click_count"] for row in published.rows(PUBLISHED_CLICKS_BY_URL_HOURLY)} == {4}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault_is_found(mended: TemporaryLake, fault: str) -> None:
    table, statement, expectations = FAULTS[fault]
    _plant(mended, table, statement)
    with pytest.raises(QualityError) as raised:
        mended.run("validate", HOUR)
    assert raised.value.exit_code == 3
    assert _failed_in_last_run(mended)["critical"] == expectations
    for expectation in expectations:
        assert expectation in str(raised.value)


def test_failed_hour_is_not_published_until_it_is_mended(mended: TemporaryLake) -> None:
    before = {table.name: mended.rows(table) for table in PUBLISHED}
    _plant(mended, CLICKS_BY_URL_HOURLY, "DELETE FROM {table} WHERE url LIKE '%/b'")
    with pytest.raises(QualityError):
        mended.run("validate", HOUR)
    with pytest.raises(QualityError, match=f"nothing is published: {HOUR}: expected"):
        mended.run("publish", HOUR)
    assert {table.name: mended.rows(table) for table in PUBLISHED} == before
    mended.run("aggregate", HOUR)
    mended.run("validate", HOUR)
    mended.run("publish", HOUR)
    assert {table.name: mended.rows(table) for table in PUBLISHED} == before


def test_hours_must_be_ingested_validated_and_not_counted_since(lake: TemporaryLake) -> None:
    with pytest.raises(ClickmillError, match=f"web {HOUR} has not been ingested.*spark_jobs.ingest_clicks"):
        lake.run("aggregate", HOUR)
    _land(lake)
    lake.run("ingest", HOUR)
    lake.run("aggregate", HOUR)
    with pytest.raises(QualityError, match=f"{HOUR}: not validated"):
        lake.run("publish", HOUR)
    assert lake.rows(PUBLISHED_CLICKS_BY_URL_HOURLY) == []
    lake.run("validate", HOUR)
    lake.run("aggregate", HOUR)
    said = lake.run("publish", HOUR)
    assert "0 click hours published" in said[0]
    assert "counted again since it was validated" in said[1]
    assert lake.rows(PUBLISHED_CLICKS_BY_URL_HOURLY) == []
    lake.run("validate", HOUR)
    assert "1 click hours published" in lake.run("publish", HOUR)[0]
    assert len(lake.rows(PUBLISHED_CLICKS_BY_URL_HOURLY)) == 3

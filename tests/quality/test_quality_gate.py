"""A planted fault makes exactly the right critical check fail, and then what it touches is not published."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from include.errors import ClickmillError, QualityError
from include.log_hours import Hour
from include.tables import (
    CLICKS,
    PUBLISHED_CLICKS_BY_COUNTRY_HOURLY,
    PUBLISHED_CLICKS_BY_URL_HOURLY,
    QUALITY_RESULTS,
)
from tests.support.killed_runs import Killed, killed_after
from tests.support.temporary_lake import TemporaryLake, click

pytestmark = pytest.mark.spark

HOUR = "2026-03-01T05"
PUBLISHED = (PUBLISHED_CLICKS_BY_URL_HOURLY, PUBLISHED_CLICKS_BY_COUNTRY_HOURLY)
NEXT, END = "2026-03-01T06", "2026-03-01T07"
COUNTRIES_ARE_KNOWN = "every country code is ISO 3166-1 alpha-2 or 'unknown'"


def _land(lake: TemporaryLake, hour: str = HOUR) -> None:
    countries, urls = ("DE", "FR", "US"), ("a", "b", "c")
    lines = [
        click(
            f"{hour}-{n}", f"{hour}:{n:02d}:00Z", f"http://shop.test/{urls[n % 3]}", geo={"country": countries[n // 4]}
        )
        for n in range(12)
    ]
    lake.land(hour, {"a.json": b"".join([*lines, lines[0], b"nonsense\n"])})


def _failed_in_last_run(lake: TemporaryLake, severity: str = "critical") -> dict[str, set[str]]:
    """What failed, by partition."""
    results = lake.rows(QUALITY_RESULTS, without=())
    newest = max(row["validated_at"] for row in results)
    failed: dict[str, set[str]] = {}
    for row in results:
        if row["validated_at"] == newest and row["severity"] == severity and row["outcome"] == "fail":
            failed.setdefault(row["partition"], set()).add(row["expectation"])
    return failed


def _published(lake: TemporaryLake) -> dict[str, list[dict[str, Any]]]:
    return {table.name: lake.rows(table) for table in PUBLISHED}


def test_nothing_is_published_until_a_fault_is_fixed(lake: TemporaryLake) -> None:
    """What each fault is found by: tests/quality/test_planted_faults.py."""
    for hour in (HOUR, NEXT):
        _land(lake, hour)
    lake.run_all(HOUR, END)
    assert _failed_in_last_run(lake) == {}
    published = _published(lake)
    assert [row["click_count"] for row in published["published_clicks_by_url_hourly"]] == [4] * 3 * 2

    path = lake.settings.lake / CLICKS.name
    lake.spark.sql(
        f"UPDATE delta.`{path}` SET country_code = 'ZZZ' WHERE log_hour = 5 AND event_id LIKE '%-0'"
    ).collect()
    with pytest.raises(QualityError) as raised:
        lake.run("validate", HOUR, END)
    assert raised.value.exit_code == 3
    assert _failed_in_last_run(lake) == {f"web {HOUR}": {COUNTRIES_ARE_KNOWN}}
    assert f"web {HOUR}: expected {COUNTRIES_ARE_KNOWN}; found invalid_country_codes = 1. " in str(raised.value)

    assert "1 click hours published, 1 held at their last good version" in lake.run("publish", HOUR, END)[0]
    assert _published(lake) == published

    lake.run_all(HOUR, END)
    assert _published(lake) == published


def test_hours_must_be_ingested_validated_and_not_counted_since(lake: TemporaryLake) -> None:
    with pytest.raises(ClickmillError, match=f"web {HOUR} has not been ingested.*clickmill ingest"):
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


def test_a_click_hour_belongs_to_the_log_hour_that_was_ingested_into_it_last(lake: TemporaryLake) -> None:
    """Two runs side by side: the later one brings a late click while the earlier one is still on its way."""
    later = str(Hour.parse(HOUR).plus(1))
    _land(lake)
    lake.land(later, {"a.json": click("late", f"{HOUR}:59:00Z", "http://shop.test/late", geo={"country": "DE"})})
    lake.run("ingest", HOUR)
    lake.run("aggregate", HOUR)
    lake.run("ingest", later)
    # The earlier run neither judges nor publishes counts that a click is missing from.
    for job in ("validate", "publish"):
        assert f"{HOUR} is left to the run of web {later}" in "\n".join(lake.run(job, HOUR))
    assert lake.rows(PUBLISHED_CLICKS_BY_URL_HOURLY) == []
    for job in ("aggregate", "validate", "publish"):
        lake.run(job, later)
    published = lake.rows(PUBLISHED_CLICKS_BY_URL_HOURLY)
    assert sum(row["click_count"] for row in published) == 13
    assert {row["url"] for row in published} >= {"http://shop.test/late"}


def test_an_ingest_that_was_killed_holds_up_nobody_once_its_source_is_declared_no_more(lake: TemporaryLake) -> None:
    _land(lake)
    with pytest.raises(Killed), killed_after(2):
        lake.run("ingest", HOUR)
    text = lake.settings.sources_file.read_text(encoding="utf-8")
    shop = text.split("[sources.access]")[0].replace("sources.web", "sources.shop")
    lake.settings.sources_file.write_text(shop, encoding="utf-8")
    lake.land(HOUR, {"a.json": click("x", f"{HOUR}:30:00Z", "http://shop.test/x")}, source="shop")
    lake.run("ingest", HOUR, source="shop")
    said = "\n".join(lake.run("aggregate", HOUR, source="shop"))
    assert f"the ingest of web {HOUR} has not ended, and its source is not declared any more" in said
    for job in ("validate", "publish"):
        lake.run(job, HOUR, source="shop")
    in_lake = Counter(row["url"] for row in lake.rows(CLICKS))
    published = {row["url"]: row["click_count"] for row in lake.rows(PUBLISHED[0])}
    assert published == in_lake
    assert published["http://shop.test/x"] == 1
    # Declared again, it is to be ingested again, and its hour is its run's.
    lake.settings.sources_file.write_text(text + shop, encoding="utf-8")
    with pytest.raises(ClickmillError, match=f"web {HOUR} has not been ingested, not to the end"):
        lake.run("aggregate", HOUR)
    lake.run_all(HOUR)
    assert sum(row["click_count"] for row in lake.rows(PUBLISHED[0])) == 13

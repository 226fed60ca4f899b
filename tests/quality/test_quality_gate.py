"""What must have been done with an hour before it is published."""

from __future__ import annotations

from collections import Counter

import pytest

from include.errors import ClickmillError, QualityError
from include.tables import CLICKS, PUBLISHED_CLICKS_BY_URL_HOURLY
from tests.support.killed_runs import Killed, killed_after
from tests.support.temporary_lake import TemporaryLake, click

pytestmark = pytest.mark.spark

HOUR = "2026-03-01T05"


def _land(lake: TemporaryLake, hour: str = HOUR) -> None:
    countries, urls = ("DE", "FR", "US"), ("a", "b", "c")
    lines = [
        click(
            f"{hour}-{n}", f"{hour}:{n:02d}:00Z", f"http://shop.test/{urls[n % 3]}", geo={"country": countries[n // 4]}
        )
        for n in range(12)
    ]
    lake.land(hour, {"a.json": b"".join([*lines, lines[0], b"nonsense\n"])})


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
    published = {row["url"]: row["click_count"] for row in lake.rows(PUBLISHED_CLICKS_BY_URL_HOURLY)}
    assert published == in_lake
    assert published["http://shop.test/x"] == 1
    # Declared again, it is to be ingested again, and its hour is its run's.
    lake.settings.sources_file.write_text(text + shop, encoding="utf-8")
    with pytest.raises(ClickmillError, match=f"web {HOUR} has not been ingested, not to the end"):
        lake.run("aggregate", HOUR)
    lake.run_all(HOUR)
    assert sum(row["click_count"] for row in lake.rows(PUBLISHED_CLICKS_BY_URL_HOURLY)) == 13

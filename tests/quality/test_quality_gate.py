"""What must have been done with an hour before it is published."""

from __future__ import annotations

from collections import Counter

import pytest

from include.errors import ClickmillError, QualityError
from include.tables import CLICKS, PUBLISHED_CLICKS_BY_URL_HOURLY, QUALITY_RESULTS
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
    lines = lake.run("publish", HOUR)
    assert "0 click hours published" in lines[0]
    assert "counted again since it was validated" in lines[1]
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
    output = "\n".join(lake.run("aggregate", HOUR, source="shop"))
    assert f"the ingest of web {HOUR} has not ended, and its source is not declared any more" in output
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


def test_an_id_may_come_again_after_its_own_source_has_forgotten_it(lake: TemporaryLake) -> None:
    """Though another source of the same validation looks further back."""
    text = lake.settings.sources_file.read_text(encoding="utf-8")
    brief = text.split("[sources.access]")[0].replace("sources.web", "sources.brief")
    brief = brief.replace("scheduled", "lateness_hours = 1\nscheduled")
    lake.settings.sources_file.write_text(text + brief, encoding="utf-8")
    hours = [f"2026-03-01T{hour:02d}" for hour in (3, 4, 5)]
    for hour in hours:
        ids = ["again", hour] if hour != hours[1] else [hour]
        lines = [click(of_id, f"{hour}:30:00Z", "http://shop.test/x") for of_id in ids]
        lake.land(hour, {"a.json": b"".join(lines)}, source="brief")
        lake.land(hour, {"a.json": click(f"web {hour}", f"{hour}:30:00Z")})
    for source in ("brief", "web"):
        lake.run("ingest", hours[0], "2026-03-01T06", source=source)
    assert Counter(row["event_id"] for row in lake.rows(CLICKS))["again"] == 2
    for source in ("brief", "web"):
        lake.run("aggregate", hours[0], "2026-03-01T06", source=source)
    lake.run("validate", hours[0], "2026-03-01T06", source="all")
    judged = [row for row in lake.rows(QUALITY_RESULTS) if row["check_id"] == "no_event_id_twice"]
    assert {row["source"] for row in judged} == {"brief", "web"}
    assert {row["outcome"] for row in judged} == {"pass"}

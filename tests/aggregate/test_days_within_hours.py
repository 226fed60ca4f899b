"""Days that begin within an hour, UTC, against dictionaries and sets over the same clicks."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

from include.counting import count_table
from include.errors import QualityError
from include.hours import Hour
from include.stored_rows import arrow_schema
from include.tables import (
    PUBLISHED,
    PUBLISHED_CLICKS_BY_COUNTRY_DAILY,
    PUBLISHED_CLICKS_BY_COUNTRY_HOURLY,
    PUBLISHED_CLICKS_BY_URL_DAILY,
    QUALITY_RESULTS,
    Table,
    daily_table,
)
from spark_jobs.lake.lake import Lake
from spark_jobs.publish.periods import read_periods
from spark_jobs.publish.publish_days import publish_days
from spark_jobs.publish.publish_hours import replace_published
from tests.support.temporary_lake import TemporaryLake, click

pytestmark = pytest.mark.spark

CRAWLER = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
#: Minutes before UTC, until a moment of 2026 and from it on.
OFFSETS = {
    "UTC": (0, "2026-12-31T00", 0),
    "Europe/Berlin": (60, "2026-03-29T01", 120),
    "Asia/Kolkata": (330, "2026-12-31T00", 330),
    "Asia/Kathmandu": (345, "2026-12-31T00", 345),
    "America/St_Johns": (-210, "2026-03-08T05", -150),
    "Australia/Lord_Howe": (660, "2026-04-04T15", 630),
}
#: In all of which days of these zones end, or near it. Clocks of Lord Howe went back by half an hour in between.
HOURS = [f"2026-04-0{day}T{hour:02d}" for day in (4, 5) for hour in (2, 13, 17, 18, 22)]
LOGGED, LATER = "2026-04-07T00", "2026-04-07T01"
Counts = dict[tuple[str, date, str], tuple[int, int, int]]


@dataclass(frozen=True)
class Clicked:
    """A click, its moment UTC."""

    at: datetime
    url: str
    country_code: str
    referrer: str
    visitor: str
    is_bot: bool

    def line(self, event_id: str) -> bytes:
        agent = CRAWLER if self.is_bot else "Mozilla/5.0"
        return click(
            event_id, f"{self.at:%Y-%m-%dT%H:%M:%SZ}", self.url, geo={"country": self.country_code},
            referrer=self.referrer, visitor_id=self.visitor, user_agent=agent,
        )  # fmt: skip


def some_clicks(hours: Iterable[str], seed: int) -> list[Clicked]:
    """At both ends of all quarters."""
    rng = random.Random(seed)
    return [
        Clicked(
            datetime.fromisoformat(f"{hour}:00Z") + timedelta(seconds=900 * quarter + second),
            f"http://shop.test/{rng.randrange(3)}",
            rng.choice(["DE", "FR"]),
            rng.choice(["http://a.test/", "http://b.test/"]),
            f"v{rng.randrange(9)}",
            rng.random() < 0.2,
        )
        for hour in hours
        for quarter in range(4)
        for second in (0, 899)
    ]


def day_in(zone: str, at: datetime) -> date:
    before, changed, since = OFFSETS[zone]
    minutes = before if at < datetime.fromisoformat(f"{changed}:00Z") else since
    return (at + timedelta(minutes=minutes)).date()


def expected(clicks: Iterable[Clicked], key: str, zones: Iterable[str] = OFFSETS) -> Counts:
    groups: dict[tuple[str, date, str], list[Clicked]] = defaultdict(list)
    zones = list(zones)
    for clicked in clicks:
        for zone in zones:
            groups[zone, day_in(zone, clicked.at), getattr(clicked, key)].append(clicked)
    return {
        group: (
            len(of),
            sum(clicked.is_bot for clicked in of),
            len({clicked.visitor for clicked in of if not clicked.is_bot}),
        )
        for group, of in groups.items()
    }


def stored(lake: TemporaryLake, table: Any) -> Counts:
    counts = ("click_count", "bot_click_count", "visitor_count")
    return {
        (row["time_zone"], row["click_date"], row[table.key[-1]]): tuple(row[name] for name in counts)
        for row in lake.rows(table)
    }


def land(lake: TemporaryLake, hour: str, clicks: Iterable[Clicked]) -> None:
    lake.land(hour, {"a.json": b"".join(clicked.line(f"{hour}-{n}") for n, clicked in enumerate(clicks))})


def configure(lake: TemporaryLake, zones: Iterable[str]) -> None:
    """These time zones, and a count whose parts are merged."""
    listed = ", ".join(f'"{zone}"' for zone in zones)
    lake.settings.pipeline_file.write_text(f'time_zones = [{listed}]\n[counts.referrer]\ngrouping = "fifo"\n')
    lake.settings.__dict__.pop("pipeline", None)


@pytest.fixture(scope="module")
def zones_lake(make_lake: Callable[[str], TemporaryLake]) -> tuple[TemporaryLake, list[Clicked]]:
    """Clicks of two days; then some come late."""
    lake = make_lake("days-within-hours")
    configure(lake, OFFSETS)
    sources = lake.settings.sources_file.read_text()
    lake.settings.sources_file.write_text(sources.replace("scheduled = true", "scheduled = true\noldest_hours = 99", 1))
    clicks, late = some_clicks(HOURS, 1), some_clicks(("2026-04-04T18", "2026-04-05T13"), 2)
    for hour, of in ((LOGGED, clicks), (LATER, late)):
        land(lake, hour, of)
        lake.run_all(hour)
    return lake, [*clicks, *late]


@pytest.mark.parametrize("key", ["url", "country_code", "referrer"])
def test_days_that_begin_within_an_hour_are_those_of_the_clicks(
    zones_lake: tuple[TemporaryLake, list[Clicked]], key: Any
) -> None:
    lake, clicks = zones_lake
    assert stored(lake, daily_table(count_table(key))) == expected(clicks, key)
    for published in PUBLISHED.values():
        if published.key[-1] == key:
            assert stored(lake, published) == expected(clicks, key)


def test_periods_of_such_a_zone_are_named_and_have_hours_in_part(
    zones_lake: tuple[TemporaryLake, list[Clicked]],
) -> None:
    lake, _ = zones_lake
    by_hour = read_periods(Lake(lake.spark, lake.settings), "hour", "Asia/Kathmandu")
    assert by_hour.periods[-1].name == "2026-04-06T03:45+0545"
    assert read_periods(Lake(lake.spark, lake.settings), "hour", "UTC").periods[-1].name == "2026-04-05T22+0000"
    by_day = read_periods(Lake(lake.spark, lake.settings), "day", "Australia/Lord_Howe")
    hours = {"2026-04-04": 24, "2026-04-05": 25, "2026-04-06": 25}
    assert {period.name: period.hours for period in by_day.periods} == hours


BEFORE, CUT, AFTER = "2026-03-01T17", "2026-03-01T18", "2026-03-01T19"
INDIA = ["UTC", "Asia/Kolkata"]


@pytest.fixture(scope="module")
def added(make_lake: Callable[[str], TemporaryLake]) -> tuple[TemporaryLake, list[Clicked]]:
    """Published by an earlier version, whose tables have no quarters; a zone is added then."""
    lake = make_lake("zone-added")
    configure(lake, ["UTC"])
    clicks = some_clicks((BEFORE, CUT, AFTER), 3)
    for number, hour in enumerate((BEFORE, CUT, AFTER)):
        land(lake, hour, clicks[8 * number : 8 * number + 8])
    lake.run_all(BEFORE, "2026-03-01T20")
    for table in (*map(count_table, lake.settings.pipeline.counts), *PUBLISHED):
        path = str(lake.settings.lake / table.name)
        former = DeltaTable(path).to_pyarrow_table().drop_columns(["quarters"])
        partitions = list(table.partitioned_by)
        write_deltalake(path, former, mode="overwrite", schema_mode="overwrite", partition_by=partitions)
    configure(lake, INDIA)
    return lake, clicks


def of_india(counts: Counts) -> Counts:
    return {group: count for group, count in counts.items() if group[0] == "Asia/Kolkata"}


def _columns(lake: Lake, table: Table, version: int) -> list[str]:
    return [field.name for field in DeltaTable(lake.uri(table), version=version).schema().fields]


def failed(lake: TemporaryLake, hour: str) -> set[str]:
    """The critical checks that fail when this hour is validated."""
    with pytest.raises(QualityError):
        lake.run("validate", hour)
    rows = lake.rows(QUALITY_RESULTS, without=())
    newest = max(row["validated_at"] for row in rows)
    critical = [row for row in rows if row["severity"] == "critical"]
    return {row["check_id"] for row in critical if row["validated_at"] == newest and row["outcome"] == "fail"}


def test_days_whose_quarters_are_not_known_are_left_out_until_the_hour_is_counted_again(
    added: tuple[TemporaryLake, list[Clicked]],
) -> None:
    lake, clicks = added
    computed = daily_table(count_table("country_code"))
    left_out = (
        "  days left out: 1 (2026-03-02 Asia/Kolkata), which begin or end within hours that were counted before their "
        f"time zone was configured: {CUT}; run these hours again from aggregate on"
    )
    assert left_out in lake.run("aggregate", AFTER)
    lake.run("validate", AFTER)
    assert lake.run("publish", AFTER)[-1] == left_out
    assert of_india(stored(lake, computed)) == {}
    assert of_india(stored(lake, PUBLISHED_CLICKS_BY_COUNTRY_DAILY)) == {}
    # Nor may rows of such a day be there that another wrote.
    stale = DeltaTable(str(lake.settings.lake / computed.name))
    rows = stale.to_pyarrow_table().filter(pc.field("click_date") == date(2026, 3, 1))
    zone = pa.array(["Asia/Kolkata"] * len(rows))
    write_deltalake(stale, rows.set_column(rows.column_names.index("time_zone"), "time_zone", zone), mode="append")
    assert failed(lake, BEFORE) == {"country_days_equal_hours"}
    for job in ("aggregate", "validate", "publish"):
        assert not any("left out" in line for line in lake.run(job, CUT))
    for table in (computed, PUBLISHED_CLICKS_BY_COUNTRY_DAILY):
        assert stored(lake, table) == expected(clicks, "country_code", INDIA)


def test_a_day_of_an_hour_that_is_undone_to_what_was_published_before_has_no_rows(
    added: tuple[TemporaryLake, list[Clicked]],
) -> None:
    temporary, clicks = added
    lake, hours = Lake(temporary.spark, temporary.settings), [Hour.parse(CUT)]
    version = lake.version(PUBLISHED_CLICKS_BY_COUNTRY_HOURLY)
    former = next(
        number
        for number in range(version or 0)
        if "quarters" not in _columns(lake, PUBLISHED_CLICKS_BY_COUNTRY_HOURLY, number)
    )
    replace_published(lake, PUBLISHED_CLICKS_BY_COUNTRY_HOURLY, PUBLISHED_CLICKS_BY_COUNTRY_HOURLY, {former: hours})
    assert [(day.date.day, hour) for day, hour in sorted(publish_days(lake, hours))] == [(1, *hours), (2, *hours)]
    assert of_india(stored(temporary, PUBLISHED_CLICKS_BY_COUNTRY_DAILY)) == {}
    of_urls = PUBLISHED_CLICKS_BY_URL_DAILY
    assert stored(temporary, of_urls) == expected(clicks, "url", INDIA)
    replace_published(lake, PUBLISHED_CLICKS_BY_COUNTRY_HOURLY, PUBLISHED_CLICKS_BY_COUNTRY_HOURLY, {version: hours})
    assert publish_days(lake, hours) == set()
    assert stored(temporary, PUBLISHED_CLICKS_BY_COUNTRY_DAILY) == expected(clicks, "country_code", INDIA)


def test_quarters_that_do_not_come_to_their_hour_hold_it(added: tuple[TemporaryLake, list[Clicked]]) -> None:
    temporary, _ = added
    hourly = count_table("country_code")
    path = temporary.settings.lake / hourly.name
    rows = DeltaTable(str(path)).to_pyarrow_table().to_pylist()
    (of_de,) = (row for row in rows if row["click_hour"] == 18 and row["country_code"] == "DE")
    of_de["quarters"][0]["click_count"] += 1
    write_deltalake(path, pa.Table.from_pylist(rows, arrow_schema(hourly, hourly.column_names)), mode="overwrite")
    assert "country_quarters_equal_hour" in failed(temporary, CUT)
    temporary.run("aggregate", CUT)
    temporary.run("validate", CUT)

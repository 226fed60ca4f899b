"""Daily tables against dictionaries and sets over the same clicks, in UTC and across both clock changes of Berlin."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from include.counting import count_table
from include.days import Grain
from include.tables import PUBLISHED, PUBLISHED_CLICKS_BY_COUNTRY_DAILY, VISITOR_COUNT_STANDARD_ERROR, daily_table
from spark_jobs.lake.lake import Lake
from spark_jobs.publish.periods import read_periods
from tests.support.temporary_lake import TemporaryLake, click

pytestmark = pytest.mark.spark

ZONES = '["UTC", "Europe/Berlin"]'
CRAWLER = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
#: Log hours far behind, in which clicks of many days land.
SPRING, AUTUMN, LATER = "2026-03-31T00", "2026-10-27T00", "2026-10-27T01"
#: Time zone, day, key: clicks, clicks by crawlers, visitors.
Counts = dict[tuple[str, date, str | None], tuple[int, int, int]]


@dataclass(frozen=True)
class Clicked:
    """A click, its moment UTC."""

    at: datetime
    url: str
    country: str
    referrer: str | None
    visitor: str | None
    is_bot: bool = False

    def line(self, event_id: str) -> bytes:
        agent = CRAWLER if self.is_bot else "Mozilla/5.0"
        return click(
            event_id, f"{self.at:%Y-%m-%dT%H:%M:%SZ}", self.url, geo={"country": self.country}, referrer=self.referrer,
            visitor_id=self.visitor, user_agent=agent,
        )  # fmt: skip


def day_in(zone: str, at: datetime) -> date:
    """The local day; Berlin's summer of 2026 is from 29 March 01:00 UTC to 25 October 01:00 UTC."""
    is_summer = datetime(2026, 3, 29, 1) <= at < datetime(2026, 10, 25, 1)
    return (at + timedelta(hours={"UTC": 0, "Europe/Berlin": 2 if is_summer else 1}[zone])).date()


def expected(clicks: Iterable[Clicked], key: str) -> Counts:
    groups: dict[tuple[str, date, str | None], list[Clicked]] = defaultdict(list)
    for clicked in clicks:
        for zone in ("UTC", "Europe/Berlin"):
            groups[zone, day_in(zone, clicked.at), getattr(clicked, key)].append(clicked)
    return {
        group: (
            len(of),
            sum(clicked.is_bot for clicked in of),
            len({clicked.visitor for clicked in of if clicked.visitor and not clicked.is_bot}),
        )
        for group, of in groups.items()
    }


def stored(lake: TemporaryLake, table: Any) -> Counts:
    return {
        (row["time_zone"], row["click_date"], row[table.key[-1]]): (
            row["click_count"],
            row["bot_click_count"],
            row["visitor_count"],
        )
        for row in lake.rows(table)
    }


def some_clicks(hours: Iterable[str], seed: int) -> list[Clicked]:
    """Four clicks an hour, at both of its ends too; visitors come again in other hours and days."""
    rng = random.Random(seed)
    return [
        Clicked(
            datetime.fromisoformat(f"{hour}:00") + timedelta(seconds=second),
            f"http://shop.test/{rng.randrange(3)}",
            rng.choice(["DE", "FR"]),
            rng.choice([None, "http://a.test/"]),
            rng.choice([None, "v1", "v2", "v3", "v4", "v5"]),
            rng.random() < 0.2,
        )
        for hour in hours
        for second in (0, 1700, 1801, 3599)
    ]


def land(lake: TemporaryLake, hour: str, clicks: list[Clicked]) -> None:
    lake.land(hour, {"a.json": b"".join(clicked.line(f"{hour}-{n}") for n, clicked in enumerate(clicks))})


@pytest.fixture(scope="module")
def changed_clocks(make_lake: Callable[[str], TemporaryLake]) -> tuple[TemporaryLake, list[Clicked]]:
    """Clicks around both clock changes of 2026, published; then some of them come late, in a log hour of its own."""
    lake = make_lake("days")
    lake.settings.pipeline_file.write_text(f"time_zones = {ZONES}\n[counts.referrer]\n")
    sources = lake.settings.sources_file.read_text()
    lake.settings.sources_file.write_text(
        sources.replace("scheduled = true", "scheduled = true\noldest_hours = 800", 1)
    )
    spring = some_clicks(("2026-03-28T22", "2026-03-28T23", "2026-03-29T01", "2026-03-29T21", "2026-03-29T22"), 1)
    autumn = some_clicks(("2026-10-24T21", "2026-10-24T22", "2026-10-25T22", "2026-10-25T23"), 2)
    late = some_clicks(("2026-10-24T21", "2026-10-25T00"), 3)
    for hour, clicks in ((SPRING, spring), (AUTUMN, autumn), (LATER, late)):
        land(lake, hour, clicks)
        lake.run_all(hour)
    return lake, [*spring, *autumn, *late]


@pytest.mark.parametrize(("key", "of_click"), [("url", "url"), ("country_code", "country"), ("referrer", "referrer")])
def test_days_are_those_of_the_clicks(
    changed_clocks: tuple[TemporaryLake, list[Clicked]], key: Any, of_click: str
) -> None:
    lake, clicks = changed_clocks
    hourly = count_table(key)
    assert stored(lake, daily_table(hourly)) == expected(clicks, of_click)
    for published in PUBLISHED.values():
        if published.key[-1] == key:
            assert stored(lake, published) == expected(clicks, of_click)


def test_days_on_which_clocks_change_have_23_and_25_hours(
    changed_clocks: tuple[TemporaryLake, list[Clicked]],
) -> None:
    lake, _ = changed_clocks
    rows = lake.rows(PUBLISHED_CLICKS_BY_COUNTRY_DAILY)
    hours = {(row["time_zone"], str(row["click_date"])): row["hours_in_day"] for row in rows}
    assert hours["Europe/Berlin", "2026-03-29"] == 23
    assert hours["Europe/Berlin", "2026-10-25"] == 25
    assert {count for (zone, day), count in hours.items() if day[-2:] not in ("29", "25") or zone == "UTC"} == {24}


def test_days_of_a_zone_with_a_slash_in_its_name_are_read_back(
    changed_clocks: tuple[TemporaryLake, list[Clicked]],
) -> None:
    lake, clicks = changed_clocks
    path = lake.settings.lake / PUBLISHED_CLICKS_BY_COUNTRY_DAILY.name
    rows = lake.spark.read.format("delta").load(str(path)).where("time_zone = 'Europe/Berlin'")
    (total,) = rows.selectExpr("sum(click_count)").collect()
    assert total[0] == len(clicks)
    shown = read_periods(Lake(lake.spark, lake.settings), "day", "Europe/Berlin")
    assert sum(period.click_count for period in shown.periods) == len(clicks)


@pytest.fixture(scope="module")
def month(make_lake: Callable[[str], TemporaryLake]) -> tuple[TemporaryLake, list[Clicked]]:
    """February 2026, 500 clicks a day by visitors of whom most come on several days."""
    lake = make_lake("month")
    sources = lake.settings.sources_file.read_text()
    lake.settings.sources_file.write_text(
        sources.replace("scheduled = true", "scheduled = true\noldest_hours = 800", 1)
    )
    rng = random.Random(7)
    clicks = [
        Clicked(
            datetime(2026, 2, 1, 12) + timedelta(days=day, seconds=n % 3600),
            f"http://shop.test/{n % 5}",
            rng.choice(["DE", "FR"]),
            None,
            f"v{rng.randrange(2500)}",
        )
        for day in range(28)
        for n in range(500)
    ]
    land(lake, "2026-03-01T00", clicks)
    lake.run_all("2026-03-01T00")
    return lake, clicks


@pytest.mark.parametrize(
    ("grain", "names"),
    [
        ("month", ["2026-02"]),
        ("week", ["2026-W05", "2026-W06", "2026-W07", "2026-W08", "2026-W09"]),
        ("day", [f"2026-02-{day:02d}" for day in range(1, 29)]),
    ],
)
def test_visitors_of_a_period_are_united_and_not_added_up(
    month: tuple[TemporaryLake, list[Clicked]], grain: Grain, names: list[str]
) -> None:
    lake, clicks = month
    shown = read_periods(Lake(lake.spark, lake.settings), grain, "UTC")
    formats = {"month": "%Y-%m", "week": "%G-W%V", "day": "%Y-%m-%d"}
    by_period: dict[str, list[Clicked]] = defaultdict(list)
    for clicked in clicks:
        by_period[clicked.at.strftime(formats[grain])].append(clicked)
    assert [period.name for period in shown.periods] == names
    for period in shown.periods:
        of_period = by_period[period.name]
        assert period.click_count == len(of_period)
        visitors = len({clicked.visitor for clicked in of_period})
        # Four standard errors.
        assert period.visitor_count == pytest.approx(visitors, rel=4 * VISITOR_COUNT_STANDARD_ERROR)
        assert (period.hours_present, period.is_final) == (0, False), "their own log hours have not been ingested"
    newest = by_period[names[-1]]
    assert {count.key: count.click_count for count in shown.urls} == {
        url: sum(clicked.url == url for clicked in newest) for url in {clicked.url for clicked in newest}
    }
    of_de = next(count for count in shown.countries if count.key == "DE")
    visitors = len({clicked.visitor for clicked in newest if clicked.country == "DE"})
    assert of_de.visitor_count == pytest.approx(visitors, rel=4 * VISITOR_COUNT_STANDARD_ERROR)
    assert shown.periods[-1].hours == {"month": 672, "week": 168, "day": 24}[grain]

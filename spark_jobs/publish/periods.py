"""The published clicks of hours, days, ISO weeks and months, their visitors united from the sketches, not added up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F

from include.days import Day, Grain, days_in, first_day, name_of
from include.errors import UsageError
from include.hours import click_hour_of
from include.settings import Settings
from include.tables import (
    PUBLISHED_CLICKS_BY_COUNTRY_DAILY,
    PUBLISHED_CLICKS_BY_COUNTRY_HOURLY,
    PUBLISHED_CLICKS_BY_URL_DAILY,
    PUBLISHED_CLICKS_BY_URL_HOURLY,
)
from spark_jobs.aggregate.sums import estimated_visitors, summed_counts
from spark_jobs.engine.steps import step
from spark_jobs.lake.data_files import has_days, may_have_click_hours
from spark_jobs.lake.lake import Lake
from spark_jobs.lines.country_database import country_database_note
from spark_jobs.publish.busiest_keys import busiest_keys
from spark_jobs.publish.report import KeyCount

MOST_PERIODS = 31
MOST_KEYS = 10


@dataclass(frozen=True)
class Period:
    """The published clicks of one hour, day, week or month of a time zone; a visitor of several days is one.

    ``hours_present`` and ``is_final`` are as in the published daily tables: a day that has no clicks at all is not in
    them, and is not there. Of an hour both say that it is published. ``visitor_count`` is None where sketches are not
    published.
    """

    name: str
    click_count: int
    bot_click_count: int
    visitor_count: int | None
    hours_present: int
    hours: int
    is_final: bool


@dataclass(frozen=True)
class Periods:
    """Newest last, at most ``MOST_PERIODS``; the busiest keys of the newest, at most ``MOST_KEYS``."""

    grain: Grain
    time_zone: str
    periods: list[Period]
    urls: list[KeyCount]
    countries: list[KeyCount]
    country_note: str | None = field(default=None, kw_only=True)


def read_periods(lake: Lake, grain: Grain, time_zone: str) -> Periods:
    """The newest periods that have published clicks; the time zone is one whose days are counted."""
    shown = _hours(lake, time_zone) if grain == "hour" else _days(lake, grain, time_zone)
    return replace(shown, country_note=country_database_note(lake.settings))


def require_counted(settings: Settings, time_zone: str | None) -> str:
    """The time zone; without one, the first of those whose days are counted.

    Raises:
        UsageError: if days of this time zone are not counted.
    """
    configured = settings.pipeline.time_zones
    if time_zone and time_zone not in configured:
        raise UsageError(
            f"time zone {time_zone!r}: its days are not counted; expected one of {', '.join(configured)}, the "
            f"time_zones of {settings.pipeline_file}"
        )
    return time_zone or configured[0]


def _days(lake: Lake, grain: Grain, time_zone: str) -> Periods:
    countries, urls = PUBLISHED_CLICKS_BY_COUNTRY_DAILY, PUBLISHED_CLICKS_BY_URL_DAILY
    files = lake.data_files(countries, pc.field("partition.time_zone") == time_zone)
    firsts = sorted({first_day(file.partition["click_date"], grain) for file in files})[-MOST_PERIODS:]
    days = {first: [Day(time_zone, first + timedelta(n)) for n in range(days_in(first, grain))] for first in firsts}
    newest = days[firsts[-1]] if firsts else []
    first = _first_day_column(grain)
    rows = lake.read_files(countries, has_days(day for days_of_period in days.values() for day in days_of_period))
    # A day's rows all say the same of it.
    by_day = rows.groupBy(first.alias("first"), "click_date").agg(
        *summed_counts(), F.any_value("hours_present").alias("hours_present"), F.any_value("is_final").alias("is_final")
    )
    by_period = by_day.groupBy("first").agg(
        *summed_counts(),
        F.sum("hours_present").alias("hours_present"),
        F.count_if("is_final").alias("final_days"),
    )
    with step(lake.spark, f"read clicks by {grain}"):
        counted = by_period.withColumn("visitors", estimated_visitors()).orderBy("first").collect()
    return Periods(
        grain,
        time_zone,
        [
            Period(
                name_of(row["first"], grain),
                row["click_count"],
                row["bot_click_count"],
                row["visitors"],
                row["hours_present"],
                sum(len(day.hours) for day in days[row["first"]]),
                row["final_days"] == len(days[row["first"]]),
            )
            for row in counted
        ],
        *(
            busiest_keys(lake.read_files(table, has_days(newest)), table.key[-1], MOST_KEYS)
            for table in (urls, countries)
        ),
    )


def _hours(lake: Lake, time_zone: str) -> Periods:
    countries, urls = PUBLISHED_CLICKS_BY_COUNTRY_HOURLY, PUBLISHED_CLICKS_BY_URL_HOURLY
    files = lake.data_files(countries)
    hours = sorted({file.click_hour for file in files})
    shown = hours[-MOST_PERIODS:]
    rows = lake.read_files(countries, may_have_click_hours(countries, shown))
    with step(lake.spark, "read clicks by hour"):
        by_hour = rows.groupBy("click_date", "click_hour").agg(*summed_counts())
        counted = by_hour.withColumn("visitors", estimated_visitors()).orderBy("click_date", "click_hour").collect()
    zone = ZoneInfo(time_zone)
    return Periods(
        "hour",
        time_zone,
        [
            Period(
                _hour_name(click_hour_of(row).start.astimezone(zone)),
                row["click_count"],
                row["bot_click_count"],
                row["visitors"],
                hours_present=1,
                hours=1,
                is_final=True,
            )
            for row in counted
        ],
        *(
            busiest_keys(lake.read_files(table, may_have_click_hours(table, shown[-1:])), table.key[-1], MOST_KEYS)
            for table in (urls, countries)
        ),
    )


def _hour_name(start: datetime) -> str:
    """``2026-03-01T05+0100``, or ``2026-03-01T09:30+0530``."""
    return start.strftime("%Y-%m-%dT%H:%M%z" if start.minute else "%Y-%m-%dT%H%z")


def _first_day_column(grain: Grain) -> Column:
    return F.col("click_date") if grain == "day" else F.trunc("click_date", grain)

"""Publish days: sums of the published hours, and whether all hours of a day are there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Any

from include.days import Day, days_of, hours_of
from include.holds import PUBLISHED as PUBLISHED_AS_COUNTED
from include.holds import PUBLISHED_ANYWAY, ClickHourState
from include.hours import Hour
from include.tables import AGGREGATES, PUBLISHED, PUBLISHED_CLICKS_BY_URL_HOURLY, Table
from spark_jobs.aggregate.days import Lacking, days_in_parts, read_hours, replace_days
from spark_jobs.aggregate.small_keys import with_counted_sketches
from spark_jobs.engine.steps import in_parallel
from spark_jobs.hours.held_hours import click_hour_states
from spark_jobs.hours.touched_hours import log_hours_around
from spark_jobs.lake.data_files import may_have_click_hours
from spark_jobs.lake.lake import Lake
from spark_jobs.publish.exports import export_days

_BY_URL = PUBLISHED_CLICKS_BY_URL_HOURLY
_COMPUTED = {published: computed for computed, published in AGGREGATES.items()}


def publish_days(lake: Lake, hours: Iterable[Hour]) -> Lacking:
    """Compute the published days of these hours again, also of hours that are not published: that shows there.

    Hold the lake's lock from what changed these hours on.
    """
    lacking: Lacking = set()
    for days in days_in_parts(lake, PUBLISHED, days_of(lake.settings.pipeline.time_zones, hours)):
        publish = partial(_publish, lake, presence_of(lake, days))
        lacking.update(*in_parallel(lake.spark, *(partial(publish, *tables) for tables in PUBLISHED.items())))
    return lacking


def _publish(lake: Lake, days: Mapping[Day, Mapping[str, Any]], hourly: Table, daily: Table) -> Lacking:
    smallest = lake.settings.pipeline.publication.smallest_visitors
    counts = read_hours(lake, hourly, days)
    if smallest:
        counts = with_counted_sketches(counts, read_hours(lake, _COMPUTED[hourly], days), hourly.key[-1])
    lacking = replace_days(lake, hourly, days, counts, smallest_visitors=smallest)
    lake.require_locks()
    export_days(lake, daily, days)
    return lacking


def presence_of(lake: Lake, days: Collection[Day]) -> dict[Day, dict[str, Any]]:
    """Of each day ``hours_in_day``, ``hours_present`` and ``is_final``, as the published daily tables have them."""
    hours = hours_of(days)
    around = log_hours_around(lake, hours)
    states = click_hour_states(lake, {hour: around.touching[hour] for hour in hours if hour in around.touching})
    files = lake.data_files(_BY_URL, may_have_click_hours(_BY_URL, hours))
    published = {file.click_hour for file in files}
    missing = {hour for hour, state in states.items() if not _is_published(state, hour in published)}
    sources: dict[Hour, set[str]] = {}
    for log_hour in around.there:
        sources.setdefault(log_hour.hour, set()).add(log_hour.source)
    return {day: _presence(day, sources, missing) for day in days}


def _is_published(state: ClickHourState, is_in_table: bool) -> bool:
    """Whether what is published of a click hour is what is to be, as far as is known."""
    if state.event is None or state.waits_for or state.is_held:
        return False
    if state.is_dropped:
        return is_in_table
    return state.event.outcome in (PUBLISHED_AS_COUNTED, PUBLISHED_ANYWAY) and state.event.at > state.changed_at


def _presence(day: Day, sources: Mapping[Hour, set[str]], missing: Collection[Hour]) -> dict[str, Any]:
    """``sources`` are those that each log hour is there of, ``missing`` the click hours that are not published."""
    of_day = set().union(*(sources.get(hour, ()) for hour in day.hours))
    present = sum(bool(of_day) and hour not in missing and sources.get(hour, set()) >= of_day for hour in day.hours)
    in_day = len(day.hours)
    return {"hours_in_day": in_day, "hours_present": present, "is_final": present == in_day}

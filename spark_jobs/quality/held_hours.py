"""Hold, decide on and publish click hours: the rules of ``include.holds`` on a real lake."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from include.backfills import read_backfills, staging_of
from include.holds import COLUMNS, HELD, SUITE, ClickHourState, Event, Findings, click_hour_state, event_row
from include.job_arguments import JobArguments
from include.log_hours import Hour, contiguous
from include.stored_rows import Filters
from include.tables import AGGREGATES, QUALITY_RESULTS, Table
from spark_jobs.lake.lake import Lake
from spark_jobs.quality.results import append_results


def click_hour_states(lake: Lake, touching: Mapping[Hour, Mapping[str, datetime]]) -> dict[Hour, ClickHourState]:
    """The states of click hours, each given with the log hours that touch it and when those were ingested.

    Hold the lake's lock from here on until what depends on it is written.
    """
    if not touching:
        return {}
    findings = Findings.of(results_of(lake, {str(hour) for hour in touching}.union(*touching.values())))
    counted_at = _counted_at(lake, touching)
    staging = [backfill for backfill in read_backfills(lake.settings.lake).values() if backfill.is_staging]

    def state(hour: Hour, log_hours: Mapping[str, datetime]) -> ClickHourState:
        staged = staging_of(staging, log_hours)
        return click_hour_state(hour, log_hours, counted_at.get(hour), findings, staged.id if staged else None)

    return {hour: state(hour, log_hours) for hour, log_hours in sorted(touching.items())}


def results_of(lake: Lake, partitions: Collection[str]) -> list[dict[str, Any]]:
    """The rows of ``quality_results``, with ``COLUMNS``, of click hours and log hours (``web 2026-03-01T06``)."""
    # By hour too: of it Delta knows what is in which file, so that old files are not opened.
    hours = {partition.split()[-1] for partition in partitions}
    of_these = [("hour", "in", sorted(hours)), ("partition", "in", sorted(partitions))]
    return lake.read_rows(QUALITY_RESULTS, COLUMNS, of_these)


def arguments_for(log_hours: Iterable[str]) -> list[JobArguments]:
    """These log hours, such as ``web 2026-03-01T06``, as ranges without gaps, each of one source."""
    hours: dict[str, set[Hour]] = {}
    for source, hour in sorted(text.split() for text in log_hours):
        hours.setdefault(source, set()).add(Hour.parse(hour))
    return [
        JobArguments(source, log_range) for source, of_source in hours.items() for log_range in contiguous(of_source)
    ]


def hold_failing(lake: Lake, run_id: str, states: Iterable[ClickHourState]) -> dict[Hour, ClickHourState]:
    """Say of those that are held, and were not before or for other reasons or numbers, that they are; return these."""
    return say_held(lake, run_id, [state for state in states if state.is_newly_held])


def say_held(lake: Lake, run_id: str, states: Iterable[ClickHourState]) -> dict[Hour, ClickHourState]:
    """Say of these that they are held; return them, each with that event."""
    now = datetime.now(UTC)
    held = {
        state.hour: replace(state, event=Event(run_id, now, HELD, state.reasons, examples=state.said))
        for state in states
    }
    if held:
        rows = [event_row(run_id, now, hour, HELD, of.reasons, examples=of.said) for hour, of in held.items()]
        append_results(lake, rows)
    return held


def held_hours(lake: Lake, since: Hour) -> dict[Hour, tuple[str, ...]]:
    """The click hours from there on whose newest event is a hold, in order, each with the failed checks."""
    of_these = [("hour", ">=", str(since)), ("suite", "=", SUITE)]
    events = Findings.of(lake.read_rows(QUALITY_RESULTS, COLUMNS, of_these)).events
    held = {Hour.parse(hour): event.examples for hour, event in events.items() if event.outcome == HELD}
    return dict(sorted(held.items()))


def _counted_at(lake: Lake, hours: Iterable[Hour]) -> dict[Hour, datetime]:
    """When each click hour was counted last, by any key; without those that have no clicks, or have lost a file.

    An aggregation that was killed may have counted by one key only: what it has counted nobody has validated. That a
    file is lost is what the suite ``layout`` finds, and holds the hour for.
    """
    hours = sorted(hours)
    newest: dict[Hour, datetime] = {}
    for table in AGGREGATES:
        try:
            rows = _count_times(lake, table, [("click_date", "in", sorted({hour.day for hour in hours}))])
        except FileNotFoundError:
            rows = [row for hour in hours for row in _count_times_if_there(lake, table, hour)]
        for row in rows:
            hour = Hour.of(row["click_date"], row["click_hour"])
            newest[hour] = max(row["counted_at"], newest.get(hour, row["counted_at"]))
    return newest


def _count_times_if_there(lake: Lake, table: Table, hour: Hour) -> list[dict[str, Any]]:
    with suppress(FileNotFoundError):
        return _count_times(lake, table, [("click_date", "=", hour.day), ("click_hour", "=", hour.hour)])
    return []


def _count_times(lake: Lake, table: Table, of_these: Filters) -> list[dict[str, Any]]:
    rows = lake.read_table(table, ("click_date", "click_hour", "counted_at"), of_these)
    newest = rows.group_by(["click_date", "click_hour"]).aggregate([("counted_at", "max")])
    found: list[dict[str, Any]] = newest.rename_columns({"counted_at_max": "counted_at"}).to_pylist()
    return found

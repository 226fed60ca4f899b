"""Which log hours nobody needs for counting or deciding any more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from include.backfills import read_backfills
from include.holds import HELD, ClickHourState
from include.hours import Hour, HourRange, LogHour
from spark_jobs.hours.held_hours import click_hour_states
from spark_jobs.hours.touched_hours import UnfinishedIngests, log_hours_around
from spark_jobs.lake.lake import Lake


def needed_still(lake: Lake, source: str, accounts: Mapping[Hour, Mapping[str, Any]]) -> dict[Hour, str]:
    """Those of these log hours that are needed, each with why; given with their rows of ``ingest_accounting``.

    Needed is an hour that is being ingested, counted or checked, waits for a person, or is of an open backfill.
    """
    unfinished = UnfinishedIngests.of(lake).to_ingest
    backfills = [backfill for backfill in read_backfills(lake.settings.lake).values() if backfill.is_open]
    touched = {Hour.parse(hour) for account in accounts.values() for hour in account["click_hours"]}
    touching = log_hours_around(lake, touched).touching if touched else {}
    states = click_hour_states(lake, {hour: touching[hour] for hour in touched & touching.keys()})
    unsettled = {hour: why for hour, state in states.items() if (why := _unsettled(state))}

    def why_needed(hour: Hour, account: Mapping[str, Any]) -> str | None:
        if LogHour(source, hour) in unfinished:
            return "its ingest has not ended"
        for backfill in backfills:
            if backfill.meets(source, HourRange.single(hour)):
                return f"{backfill.described} is {backfill.state}"
        if account["clicks_removed_at"]:
            return None
        return next(
            (
                unsettled[click_hour]
                for click_hour in map(Hour.parse, account["click_hours"])
                if click_hour in unsettled
            ),
            None,
        )

    return {hour: why for hour, account in accounts.items() if (why := why_needed(hour, account))}


def _unsettled(state: ClickHourState) -> str | None:
    """What is yet to become of these counts; None if they were published or dropped."""
    if state.staged_by:
        return f"click hour {state.hour} waits for a decision on the staged backfill {state.staged_by}"
    if state.is_held or (state.event and state.event.outcome == HELD):
        return f"click hour {state.hour} is held"
    if state.event is None or state.event.at <= state.changed_at:
        return f"click hour {state.hour} is not published"
    return None

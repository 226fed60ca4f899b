"""Which log hours have landed, or were streamed, and have not been counted and published since."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from include.backfills import read_backfills
from include.holds import SUITE
from include.landing import closed_hours
from include.log_hours import Hour
from include.settings import Settings
from include.sources import Source
from include.stored_rows import read_rows
from include.tables import INGEST_ACCOUNTING, QUALITY_RESULTS, STREAM_BATCHES, UNFINISHED_INGESTS


def known_hours(settings: Settings, source: Source) -> dict[Hour, datetime | None]:
    """The source's log hours that are closed, each with when; of a stream those that it has read, without."""
    if source.stream is None:
        closed = closed_hours(settings.landing, source.name)
        return {hour: datetime.fromtimestamp(at / 1e9, UTC) for hour, at in closed.items()}
    rows = read_rows(settings.lake, STREAM_BATCHES, ("log_date", "log_hour"), [("source", "=", source.name)])
    return dict.fromkeys(_by_hour(rows))


def ingested_hours(settings: Settings, source: Source) -> set[Hour]:
    """The source's log hours of which there were lines."""
    columns, of_source = ("log_date", "log_hour", "lines"), [("source", "=", source.name)]
    rows = read_rows(settings.lake, INGEST_ACCOUNTING, columns, of_source)
    return set(_by_hour([row for row in rows if row["lines"]]))


def unpublished_hours(
    settings: Settings,
    source: Source,
    within: timedelta,
    now: datetime,
    known: Mapping[Hour, datetime | None] | None = None,
) -> list[Hour]:
    """The source's log hours, in order, of which clicks are yet to be published or held; the newest, so far back.

    Those that were never ingested, whose ingest has not ended, that were closed again since, and those with a click
    hour on which nothing was said since: that it is published, held, or dropped. Without those whose clicks were
    removed for their age, and those of a staged backfill: a person has to decide on them. Of a stream those that are
    over. ``known``: what ``known_hours`` has just found.
    """
    found = known_hours(settings, source) if known is None else known
    there = {hour: at for hour, at in found.items() if source.stream is None or hour.end <= now}
    if not there:
        return []
    first = Hour.containing(max(there).start - within)
    in_lake = [("source", "=", source.name), ("log_date", ">=", first.day)]
    accounts = _by_hour(read_rows(settings.lake, INGEST_ACCOUNTING, _ACCOUNT, in_lake))
    unfinished = _by_hour(read_rows(settings.lake, UNFINISHED_INGESTS, ("log_date", "log_hour"), in_lake[:1]))
    reach = first.plus(-source.oldest_hours - 1)
    events = read_rows(
        settings.lake, QUALITY_RESULTS, ("hour", "validated_at"), [("hour", ">=", str(reach)), ("suite", "=", SUITE)]
    )
    said_at: dict[str, datetime] = {}
    for row in events:
        said_at[row["hour"]] = max(row["validated_at"], said_at.get(row["hour"], row["validated_at"]))

    def is_done(hour: Hour, closed_at: datetime | None) -> bool:
        account = accounts.get(hour)
        if account is None or hour in unfinished or (closed_at and closed_at > account["ingested_at"]):
            return False
        if account["clicks_removed_at"]:
            return True
        return all(hour in said_at and said_at[hour] >= account["ingested_at"] for hour in account["click_hours"])

    backfills = read_backfills(settings.lake).values()
    staged = {hour for one in backfills if one.is_staging and one.source == source.name for hour in one.log_hours}
    return sorted(
        hour
        for hour, closed_at in there.items()
        if hour >= first and hour not in staged and not is_done(hour, closed_at)
    )


_ACCOUNT = ("log_date", "log_hour", "click_hours", "ingested_at", "clicks_removed_at")


def _by_hour(rows: list[dict[str, Any]]) -> dict[Hour, Mapping[str, Any]]:
    return {Hour.of(row["log_date"], row["log_hour"]): row for row in rows}

"""Which log hours have landed, or were streamed, and have not been counted and published since."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from include.backfills import read_backfills
from include.hours import ONE_HOUR, Hour, log_hour_of
from include.journal import click_hours_since
from include.landing import SUCCESS, as_landed_files, closed_hours, landed_since, landing_days, listed_hours
from include.settings import Settings
from include.sources import Source
from include.stored_rows import StoredLake
from include.tables import INGEST_ACCOUNTING, JOURNAL, STREAM_BATCHES, UNFINISHED_INGESTS


def known_hours(settings: Settings, source: Source) -> Collection[Hour]:
    """The source's log hours that are closed; of a stream those that it has read."""
    if source.stream is None:
        return closed_hours(settings.landing, source.name)
    rows = StoredLake(settings.lake).read_rows(STREAM_BATCHES, ("log_date", "log_hour"), [("source", "=", source.name)])
    return set(_by_hour(rows))


def files_landed_since(settings: Settings, source: Source) -> dict[Hour, list[str]]:
    """What lies in the landing partitions of ingested log hours and was not read so: its names, by log hour in order.

    Whatever its date is, and whether or not the hour was closed again; if it was, ``_SUCCESS`` is among the names. Of
    the newest log hours, as ``watched_hours`` of ``[late_files]`` says. A stream reads what lands by itself.
    """
    watched = settings.pipeline.late_files.watched_hours
    days = landing_days(settings.landing, source.name) if source.stream is None and watched else []
    if not days:
        return {}
    # A folder of a day to come is none of the newest.
    newest = min(max(days), datetime.now(UTC).date())
    first = Hour.of(newest, 23).start - watched * ONE_HOUR
    in_lake = [("source", "=", source.name), ("log_date", ">=", first.date())]
    columns = ("log_date", "log_hour", "landed_files", "ingested_at")
    accounts = _by_hour(StoredLake(settings.lake).read_rows(INGEST_ACCOUNTING, columns, in_lake))
    days_ingested = {hour.day for hour in accounts if hour.start >= first}.intersection(days)
    landed = listed_hours(settings.landing, source.name, sorted(days_ingested))
    since = {}
    for hour in sorted(accounts.keys() & landed.keys()):
        account = accounts[hour]
        if account["landed_files"] is None:
            # It was of a topic: nothing of this has been read, unless it was there already.
            ingested_ns = account["ingested_at"].timestamp() * 1e9
            old = (entry for entry in landed[hour] if entry.changed_ns <= ingested_ns)
            account = {**account, "landed_files": as_landed_files(old)}
        if hour.start >= first and (names := landed_since(landed[hour], account)):
            since[hour] = names
    return since


def late_names(names: Iterable[str]) -> list[str]:
    """Of what ``files_landed_since`` found, all but that the hour was closed again."""
    return [name for name in names if name != SUCCESS]


def ingested_hours(settings: Settings, source: Source) -> set[Hour]:
    """The source's log hours of which there were lines."""
    columns, of_source = ("log_date", "log_hour", "lines"), [("source", "=", source.name)]
    rows = StoredLake(settings.lake).read_rows(INGEST_ACCOUNTING, columns, of_source)
    return set(_by_hour([row for row in rows if row["lines"]]))


def unpublished_hours(
    settings: Settings,
    source: Source,
    within: timedelta,
    now: datetime,
    known: Collection[Hour] | None = None,
    since: Collection[Hour] | None = None,
) -> list[Hour]:
    """The source's log hours, in order, of which clicks are yet to be published or held; the newest, so far back.

    Those that were never ingested, whose ingest has not ended, in which something has landed since, and those with a
    click hour on which nothing was said since: that it is published, held, or dropped. Without those whose clicks, or
    landed files, were removed for their age, and those of a staged backfill: a person has to decide on them. None that
    is yet to come, and of a stream those that are over. ``known``, ``since``: what ``known_hours`` and
    ``files_landed_since`` have just found.
    """
    since = files_landed_since(settings, source) if since is None else since
    hours = {*(known_hours(settings, source) if known is None else known), *since}
    there = {hour for hour in hours if (hour.start if source.stream is None else hour.end) <= now}
    if not there:
        return []
    lake, first = StoredLake(settings.lake), Hour.containing(max(there).start - within)
    in_lake = [("source", "=", source.name), ("log_date", ">=", first.day)]
    accounts = _by_hour(lake.read_rows(INGEST_ACCOUNTING, _ACCOUNT, in_lake))
    unfinished = _by_hour(lake.read_rows(UNFINISHED_INGESTS, ("log_date", "log_hour"), in_lake[:1]))
    reach = first.plus(-source.oldest_hours - 1)
    newest: dict[str, datetime] = {}
    for event in lake.read_rows(JOURNAL, ("subject", "at"), click_hours_since(reach)):
        newest[event["subject"]] = max(event["at"], newest.get(event["subject"], event["at"]))

    def is_done(hour: Hour) -> bool:
        account = accounts.get(hour)
        if account is None or hour in unfinished:
            return False
        if account["clicks_removed_at"] or account["landing_removed_at"]:
            return True
        if hour in since:
            return False
        return all(hour in newest and newest[hour] >= account["ingested_at"] for hour in account["click_hours"])

    backfills = read_backfills(settings.lake).values()
    staged = {
        hour
        for backfill in backfills
        if backfill.is_staging and backfill.source == source.name
        for hour in backfill.log_hours
    }
    return sorted(hour for hour in there if hour >= first and hour not in staged and not is_done(hour))


_ACCOUNT = ("log_date", "log_hour", "click_hours", "ingested_at", "clicks_removed_at", "landing_removed_at")


def _by_hour(rows: list[dict[str, Any]]) -> dict[Hour, Mapping[str, Any]]:
    return {log_hour_of(row): row for row in rows}

"""From log hours to the click hours that they touch, and whose run is to count, check and publish each.

A click hour may be touched by many log hours: late clicks, several sources. It belongs to the run of the log hour that
was ingested into it last: that run sees all its clicks. Other runs do not count or check it, and publish it only as
that run has checked it. What comes to a finalised log hour of a stream
belongs to the run that finds it, as if that run had been asked for the log hour too. An ingest that has not ended,
because it was killed, is the last one of all: what it has written may be half of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow.compute as pc

from include.errors import ClickmillError
from include.hours import Hour, HourRange, LogHour
from include.settings import Settings
from include.sources import Source, load_sources
from include.tables import INGEST_ACCOUNTING, UNFINISHED_INGESTS
from spark_jobs.lake.lake import Lake

_COLUMNS = (
    *INGEST_ACCOUNTING.key,
    "lines",
    "accepted",
    "duplicates",
    "left_out",
    "out_of_order",
    "files",
    "bytes",
    "damaged_files",
    "unread_files",
    "is_closed",
    "click_hours",
    "reopened_log_hours",
    "ingested_at",
    "clicks_removed_at",
)


@dataclass(frozen=True)
class TouchedHours:
    """The click hours that log hours touch, or touched in earlier runs.

    ``own`` are those that belong to these log hours, in order. ``left`` are the others, with the log hour that each
    belongs to. ``log_hours_of`` has, of both, all log hours that touch them, with the moment each was ingested.
    ``accounts`` has the accounting of the log hours that have been ingested to the end. ``unfinished`` are all log
    hours around them of which an ingest has not ended. ``closed`` are the click hours that stay as they were counted,
    each with a log hour whose clicks of it have been removed for their age. ``given_up`` are log hours that touch
    ``own``, and whose ingest has not ended and will not: their sources are not declared any more.
    """

    own: list[Hour]
    left: dict[Hour, LogHour]
    log_hours_of: dict[Hour, dict[LogHour, datetime]]
    accounts: list[dict[str, Any]]
    unfinished: frozenset[LogHour]
    closed: dict[Hour, LogHour]
    given_up: frozenset[LogHour] = frozenset()

    def described_left(self) -> list[str]:
        """A line for each click hour that is left to another run, or stays as it was; and for what is given up."""
        return [
            *(
                f"  {hour} is left to the run of {owner}, "
                + ("whose ingest has not ended" if owner in self.unfinished else "which was ingested later")
                for hour, owner in self.left.items()
            ),
            *(
                f"  {hour} stays as it was counted: the clicks of {removed} have been removed for their age"
                for hour, removed in self.closed.items()
            ),
            *(
                f"  the ingest of {log_hour} has not ended, and its source is not declared any more: what it had "
                "written counts; to have all of it, declare the source again and ingest the log hour"
                for log_hour in sorted(self.given_up)
            ),
        ]


def touched_click_hours(
    lake: Lake, sources: Sequence[Source], log_hours: HourRange, *, allow_absent: bool = False
) -> TouchedHours:
    """The click hours that the sources' log hours touch.

    Raises:
        ClickmillError: if one of the log hours has not been ingested; with ``allow_absent`` if none has been. If the
            clicks of one have been removed for their age.
    """
    asked = {LogHour(source.name, hour) for source in sources for hour in log_hours}
    rows, unfinished = _accounting_around(lake, log_hours), UnfinishedIngests.of(lake)
    furthest = max(
        (Hour.parse(hour) for log_hour in asked & rows.keys() for hour in rows[log_hour]["click_hours"]), default=None
    )
    # An ingest touches what the later log hours touch of which it changes the duplicates, however far they are.
    if furthest and furthest > log_hours.end:
        rows = _accounting_around(lake, HourRange(log_hours.start, furthest))
    missing = asked - (rows.keys() - unfinished.to_ingest.keys())
    if missing and not (allow_absent and len(missing) < len(asked)):
        raise _not_ingested(missing, len(asked), unfinished)
    ingested = asked - missing
    if removed := [log_hour for log_hour in ingested if rows[log_hour]["clicks_removed_at"]]:
        raise _clicks_removed(removed, len(asked), rows)
    reopened = {
        LogHour(log_hour.source, Hour.parse(hour))
        for log_hour in ingested
        for hour in rows[log_hour]["reopened_log_hours"]
    }
    if reopened:
        rows |= _accounting_around(lake, {log_hour.hour for log_hour in reopened})
    # Late records of a finalised log hour of a stream are counted by the run that has found them.
    ours = ingested | (reopened & rows.keys())
    touching = _touching(lake.settings, rows, unfinished)
    closed = _closed(rows)
    own, left = [], {}
    touched = sorted({Hour.parse(hour) for log_hour in ours for hour in rows[log_hour]["click_hours"]})
    for click_hour in (hour for hour in touched if hour not in closed):
        moments = touching[click_hour]
        last = max(
            moments, key=lambda log_hour: (log_hour in unfinished.to_ingest, moments[log_hour], log_hour in ours)
        )
        if last in ours:
            own.append(click_hour)
        else:
            left[click_hour] = last
    accounts = [rows[log_hour] for log_hour in sorted(ingested)]
    return TouchedHours(
        own,
        left,
        {hour: touching[hour] for hour in [*own, *left]},
        accounts,
        frozenset(unfinished.to_ingest),
        {hour: closed[hour] for hour in touched if hour in closed},
        frozenset(
            log_hour
            for log_hour, row in unfinished.given_up.items()
            if not set(row["click_hours"]).isdisjoint(map(str, own))
        ),
    )


def _not_ingested(missing: Collection[LogHour], asked: int, unfinished: UnfinishedIngests) -> ClickmillError:
    first = min(missing)
    again = unfinished.to_ingest.get(first, first)
    return ClickmillError(
        f"{first} has not been ingested{', not to the end' if first in unfinished.to_ingest else ''} "
        f"({len(missing)} of {asked} log hours); run: clickmill ingest --source {again.source} --hour {again.hour}"
    )


def _clicks_removed(
    removed: Collection[LogHour], asked: int, rows: Mapping[LogHour, Mapping[str, Any]]
) -> ClickmillError:
    first = min(removed)
    return ClickmillError(
        f"{first} cannot be counted or checked again ({len(removed)} of {asked} log hours): its clicks were removed at "
        f"{rows[first]['clicks_removed_at']:%Y-%m-%d %H:%M} UTC, being older than clicks_days of [retention]; what was "
        "published stays; leave these log hours out, or ingest them again"
    )


def closed_click_hours(lake: Lake, click_hours: Iterable[Hour], but_of: Collection[LogHour]) -> dict[Hour, LogHour]:
    """Those of these click hours that are not counted again, each with a log hour whose clicks of it were removed.

    ``but_of`` are log hours that are being ingested again.
    """
    wanted = list(click_hours)
    if not wanted or not any(removed_log_hours(lake).values()):
        return {}
    rows = _accounting_around(lake, wanted)
    closed = _closed({log_hour: row for log_hour, row in rows.items() if log_hour not in but_of})
    return {hour: closed[hour] for hour in wanted if hour in closed}


def removed_log_hours(lake: Lake) -> dict[str, set[Hour]]:
    """By source the log hours whose clicks have been removed for their age; as Delta's log says, no file is read."""
    removed: dict[str, set[Hour]] = {}
    for file in lake.data_files(INGEST_ACCOUNTING, pc.field("max.clicks_removed_at").is_valid()):
        removed.setdefault(file.partition["source"], set()).add(file.log_hour)
    return removed


def removed_within_lateness(lake: Lake, source: Source, hours: Sequence[Hour]) -> list[Hour]:
    """The log hours whose clicks say which lines of these ones are duplicates, and have been removed for their age."""
    if not source.has_event_id:
        return []
    reach = source.lateness_hours
    around = {hour.plus(shift) for hour in hours for shift in range(-reach, reach + 1)}
    return sorted(removed_log_hours(lake).get(source.name, set()) & around)


def _closed(accounts: Mapping[LogHour, Mapping[str, Any]]) -> dict[Hour, LogHour]:
    """By click hour the first of the log hours whose clicks of it have been removed."""
    return {
        Hour.parse(hour): log_hour
        for log_hour, row in sorted(accounts.items(), reverse=True)
        if row["clicks_removed_at"]
        for hour in row["click_hours"]
    }


def log_hours_touching(lake: Lake, click_hour: Hour) -> dict[LogHour, datetime]:
    """The log hours that touch a click hour, each with the moment it was ingested."""
    return log_hours_around(lake, [click_hour]).touching.get(click_hour, {})


@dataclass(frozen=True)
class LogHoursAround:
    """The log hours around click hours, of all sources.

    ``there`` are those that have landed and have been ingested to the end; ``touching`` has, of each click hour, those
    that touch it, with the moment each was ingested.
    """

    there: frozenset[LogHour]
    touching: dict[Hour, dict[LogHour, datetime]]


def log_hours_around(lake: Lake, click_hours: Iterable[Hour]) -> LogHoursAround:
    """The log hours around these click hours; ``touching`` is complete for these."""
    rows, unfinished = _accounting_around(lake, click_hours), UnfinishedIngests.of(lake)
    landed = {log_hour for log_hour, row in rows.items() if row["is_closed"] or row["files"]}
    return LogHoursAround(frozenset(landed - unfinished.to_ingest.keys()), _touching(lake.settings, rows, unfinished))


@dataclass(frozen=True)
class UnfinishedIngests:
    """The rows of ``unfinished_ingests``, by log hour.

    ``to_ingest`` has these log hours, and those of which such an ingest was changing the duplicates, each with the log
    hour that is to be ingested again. Those of sources that are not declared any more are ``given_up`` instead: nobody
    can ingest them, and the clicks of an ingest are written at once, so that others can be counted with them.
    """

    rows: dict[LogHour, dict[str, Any]]
    to_ingest: dict[LogHour, LogHour]
    given_up: dict[LogHour, dict[str, Any]]

    @classmethod
    def of(cls, lake: Lake) -> UnfinishedIngests:
        """Those of the lake, of all sources, however far away."""
        stored = lake.read_rows(UNFINISHED_INGESTS, UNFINISHED_INGESTS.column_names, [])
        declared = load_sources(lake.settings)
        by_log_hour = {LogHour.of(row): row for row in stored}
        rows = {log_hour: row for log_hour, row in by_log_hour.items() if log_hour.source in declared}
        given_up = {log_hour: row for log_hour, row in by_log_hour.items() if log_hour not in rows}
        changed = {
            LogHour(log_hour.source, Hour.parse(hour)): log_hour
            for log_hour, row in rows.items()
            for hour in row["changed_later"]
        }
        return cls(rows, changed | {log_hour: log_hour for log_hour in rows}, given_up)


def _touching(
    settings: Settings, accounts: Mapping[LogHour, Mapping[str, Any]], unfinished: UnfinishedIngests
) -> dict[Hour, dict[LogHour, datetime]]:
    """By click hour; without sources that are not declared any more, as nothing is to wait for runs of theirs."""
    touching: dict[Hour, dict[LogHour, datetime]] = {}
    declared = load_sources(settings)
    for rows, moment in ((accounts, "ingested_at"), (unfinished.rows, "began_at")):
        for log_hour, row in rows.items():
            for click_hour in row["click_hours"] if log_hour.source in declared else ():
                touching.setdefault(Hour.parse(click_hour), {})[log_hour] = row[moment].astimezone(UTC)
    return touching


def reach_of_log_hours(settings: Settings) -> timedelta:
    """How far at most a click hour is from a log hour that touches it."""
    return timedelta(hours=1 + max(source.oldest_hours for source in load_sources(settings).values()))


def _accounting_around(lake: Lake, log_hours: Iterable[Hour]) -> dict[LogHour, dict[str, Any]]:
    """All sources' accounting, by log hour, as far as it can touch a click hour that these log hours touch."""
    reach = timedelta(days=1) + reach_of_log_hours(lake.settings)
    days = {hour.day + timedelta(days=shift) for hour in log_hours for shift in range(-reach.days, reach.days + 1)}
    rows = lake.read_rows(INGEST_ACCOUNTING, _COLUMNS, [("log_date", "in", sorted(days))])
    return {LogHour.of(row): row for row in rows}

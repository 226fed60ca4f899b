"""What became of each backfill: a function of its events in ``journal``, in any order.

A staged backfill keeps the click hours that it counts from being published, by anyone, until a person has decided.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from include.errors import FinalError
from include.hours import Hour, HourRange, LogHour
from include.journal import BACKFILL, hours_of, in_order, read_events
from include.stored_rows import StoredLake
from include.tables import AGGREGATES

if TYPE_CHECKING:
    from deltalake import DeltaTable

BEGUN, CHUNK_DONE, PUBLISHING, FINISHED = "begun", "chunk_done", "publishing", "finished"
COMPARED, APPROVED, SWAPPING, SWAPPED, DROPPED = "compared", "approved", "swapping", "swapped", "dropped"
UNDOING, UNDONE = "undoing", "undone"

#: What each state of a backfill means, and what to do next; ``{id}`` is the backfill's.
NEXT_STEP = {
    "running": "Its chunks are running, or it was interrupted: start it again with the same hours, and it goes on.",
    "waiting": "Look at the comparison, then approve or drop it: under Data quality, Backfills, in Airflow, or with "
    "clickmill decide-backfill {id}.",
    "swapping": "It is approved, and some tables have it: start it again with the same hours, and the others follow.",
    "published": "To restore what was published before: clickmill undo {id}.",
    "dropped": "Its hours stay as they were published: land the right files, and backfill them again, or release them "
    "with clickmill decide. clicks has what this backfill ingested.",
    "undoing": "Being undone: the same undo again does the rest.",
    "undone": "Its hours stay as they were published: land the right files, and backfill them again, or release them "
    "with clickmill decide. clicks has what this backfill ingested.",
}
#: How long Delta keeps a table's log at least, unless the table says otherwise.
#: Source: https://docs.delta.io/latest/table-properties.html, delta.logRetentionDuration
LOG_RETENTION = timedelta(days=30)
_INTERVAL = re.compile(r"^interval (\d+) (hour|day|week)s?$")
#: Work goes on over its hours, or a decision is open.
OPEN_STATES = frozenset({"running", "waiting", "swapping", "undoing"})


class UnknownBackfillError(FinalError):
    """There is no backfill of that id."""


@dataclass(frozen=True)
class Publication:
    """A click hour that a backfill has published: when it began to, the first time and the last.

    ``versions`` are those of the published tables before the first time, by table; of a table that had not been made
    there is none.
    """

    first_at: datetime
    last_at: datetime
    versions: Mapping[str, int]


@dataclass(frozen=True)
class Measured:
    """How long a chunk took: so many log hours and bytes, from ingest to publish."""

    log_hours: int
    size_bytes: int
    seconds: float
    at: datetime


@dataclass(frozen=True)
class Decision:
    """Who decided what on a backfill, when and why."""

    event: str
    at: datetime
    actor: str
    because: str


@dataclass(frozen=True)
class Backfill:
    """One backfill, as its events say.

    ``state`` is a key of ``NEXT_STEP``. ``done`` are the chunks that are done, by their first log hour. ``counts``
    names the counts of the newest comparison, None before there is one. ``swapped_tables`` have the counts that were
    approved. ``published`` are the click hours that it has published. ``decisions`` are oldest first.
    """

    id: str
    source: str
    log_hours: HourRange
    chunk_hours: int
    is_staged: bool
    because: str
    begun_at: datetime
    state: str
    done: Mapping[Hour, Measured]
    counts: str | None
    swapped_tables: tuple[str, ...]
    published: Mapping[Hour, Publication]
    decisions: tuple[Decision, ...]

    @property
    def is_open(self) -> bool:
        """Whether work goes on over its hours, or a decision is open."""
        return self.state in OPEN_STATES

    @property
    def is_staging(self) -> bool:
        """Whether nobody else may publish the click hours that its log hours touch."""
        return self.is_staged and self.state in ("running", "waiting", "swapping")

    @property
    def next_step(self) -> str:
        """What a person can do about it."""
        return NEXT_STEP[self.state].format(id=self.id)

    @property
    def described(self) -> str:
        """For people: its id, source and hours."""
        return f"backfill {self.id} of {self.source} {self.log_hours}"

    def chunks(self) -> list[HourRange]:
        """The log hours in chunks of ``chunk_hours``, the last one perhaps shorter."""
        return self.log_hours.chunks(self.chunk_hours)

    def has_log_hour(self, log_hour: LogHour) -> bool:
        """Whether a log hour is one of its."""
        return log_hour.source == self.source and log_hour.hour in self.log_hours

    def meets(self, source: str, log_hours: HourRange) -> bool:
        """Whether it has log hours of this source in common with the range."""
        hours = self.log_hours
        return source == self.source and hours.start < log_hours.end and log_hours.start < hours.end


def backfills_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, Backfill]:
    """The backfills of these rows of ``journal`` on backfills, by id, oldest first."""
    events: dict[str, list[Mapping[str, Any]]] = {}
    for row in in_order(rows):
        events.setdefault(row["subject"], []).append(row)
    return {backfill_id: _backfill(of_backfill) for backfill_id, of_backfill in events.items()}


def read_backfills(lake: Path) -> dict[str, Backfill]:
    """The backfills of a lake, by id, oldest first."""
    return backfills_of(read_events(lake, [("kind", "=", BACKFILL)]))


def undo_until(lake: Path, backfill: Backfill) -> datetime | None:
    """Until when, at least, a backfill can be undone if nobody runs VACUUM; None if it has published nothing."""
    if not backfill.published:
        return None
    return min(publication.first_at for publication in backfill.published.values()) + history_kept(lake)


def history_kept(lake: Path) -> timedelta:
    """How long at least the published tables of a lake keep their log; Delta's own time if it is not in whole units."""
    stored = (StoredLake(lake).stored(table) for table in AGGREGATES.values())
    return min(_log_retention(table) if table else LOG_RETENTION for table in stored)


def _log_retention(table: DeltaTable) -> timedelta:
    stated = table.metadata().configuration.get("delta.logRetentionDuration", "")
    interval = _INTERVAL.match(stated.lower())
    return timedelta(**{f"{interval[2]}s": int(interval[1])}) if interval else LOG_RETENTION


def staging_of(backfills: Iterable[Backfill], log_hours: Iterable[LogHour]) -> Backfill | None:
    """The staged backfill that keeps a click hour, touched by these log hours, from being published; None for none."""
    touching = list(log_hours)
    staging = (backfill for backfill in backfills if backfill.is_staging)
    return next(
        (backfill for backfill in staging if any(backfill.has_log_hour(log_hour) for log_hour in touching)), None
    )


@dataclass
class _Recorded:
    """What the events say so far."""

    state: str = "running"
    done: dict[Hour, Measured] = field(default_factory=dict)
    counts: str | None = None
    tables: tuple[str, ...] = ()
    published: dict[Hour, Publication] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)


_STATE_AFTER = {
    BEGUN: "running",
    FINISHED: "published",
    COMPARED: "waiting",
    APPROVED: "swapping",
    SWAPPED: "published",
    DROPPED: "dropped",
    UNDOING: "undoing",
    UNDONE: "undone",
}


def _backfill(events: list[Mapping[str, Any]]) -> Backfill:
    begun, recorded = events[0], _Recorded()
    for row in events:
        details = row["details"]
        recorded.state = _STATE_AFTER.get(row["event"], recorded.state)
        if row["event"] == CHUNK_DONE:
            numbers = int(details["log_hours"]), int(details["bytes"]), float(details["seconds"])
            recorded.done[Hour.parse(details["chunk"])] = Measured(*numbers, row["at"])
        elif row["event"] == PUBLISHING:
            versions = json.loads(details["versions"])
            for hour in map(Hour.parse, json.loads(details["click_hours"])):
                first = recorded.published.get(hour, Publication(row["at"], row["at"], versions))
                recorded.published[hour] = Publication(first.first_at, row["at"], first.versions)
        elif row["event"] == COMPARED:
            recorded.counts = details["counts"]
        elif row["event"] == SWAPPING:
            recorded.tables = tuple(sorted({*recorded.tables, details["table"]}))
        if row["event"] in (APPROVED, DROPPED, UNDOING):
            recorded.decisions.append(Decision(row["event"], row["at"], row["actor"], row["because"]))
    return Backfill(
        id=begun["subject"],
        source=begun["source"],
        log_hours=hours_of(begun),
        chunk_hours=int(begun["details"]["chunk_hours"]),
        is_staged=json.loads(begun["details"]["is_staged"]),
        because=begun["because"] or "",
        begun_at=begun["at"],
        state=recorded.state,
        done=recorded.done,
        counts=recorded.counts,
        swapped_tables=recorded.tables,
        published=recorded.published,
        decisions=tuple(recorded.decisions),
    )

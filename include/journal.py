"""The journal: who did what, when, why and how far; one row an event. Its rows are made and read here, without Spark.

What a click hour, a backfill or a replay is at is a function of its events: ``include.holds``, ``include.backfills``,
``spark_jobs.hours.replays``.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from include.hours import Hour, HourRange
from include.tables import JOURNAL

if TYPE_CHECKING:
    from include.stored_rows import Filters

#: What an event is about, its ``kind``.
CLICK_HOUR, BACKFILL, REPLAY, ACT = "click_hour", "backfill", "replay", "act"
#: The events of an act itself.
BEGUN, COMPLETED, FAILED = "begun", "completed", "failed"
#: The acts that a person asks for, with a name and a reason.
SIGNED_ACTS = (
    "decide_held",
    "decide_backfill",
    "undo_backfill",
    "replay_quarantined",
    "withdraw_replay",
    "erase_visitor",
)


@dataclass(frozen=True)
class Act:
    """What is being done: by a job, or for a person, who is ``actor`` then and says why."""

    id: str
    name: str
    actor: str | None = None
    because: str | None = None


def journal_row(
    act: Act,
    kind: str,
    subject: str,
    event: str,
    at: datetime,
    *,
    hours: HourRange | None = None,
    source: str | None = None,
    actor: str | None = None,
    because: str | None = None,
    details: Mapping[str, Any],
) -> dict[str, Any]:
    """One row of ``journal``: by whom and why only if told; a detail that is None is left out."""
    texts = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in details.items()
        if value is not None
    }
    return {
        "kind": kind,
        "year": hours.start.day.year if hours else at.year,
        "act_id": act.id,
        "act": act.name,
        "subject": subject,
        "source": source,
        "first_hour": str(hours.start) if hours else None,
        "end_hour": str(hours.end) if hours else None,
        "at": at,
        "event": event,
        "actor": actor,
        "because": because,
        "details": texts,
    }


def hours_of(row: Mapping[str, Any]) -> HourRange:
    """The hours of a row of ``journal`` that has some, as ``journal_row`` was given them."""
    return HourRange(Hour.parse(row["first_hour"]), Hour.parse(row["end_hour"]))


def read_events(lake: Path, where: Filters) -> list[dict[str, Any]]:
    """The rows of ``journal`` that the filters let through, oldest first, with ``details`` as a dictionary."""
    # DAGs import the rules on events, and read none.
    from include.stored_rows import StoredLake

    return in_order(StoredLake(lake).read_rows(JOURNAL, JOURNAL.column_names, where))


def in_order(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of ``journal``, oldest first, with ``details`` as a dictionary."""
    return sorted(({**row, "details": dict(row["details"])} for row in rows), key=lambda row: row["at"])


def click_hours_filter(hours: Collection[Hour]) -> Filters:
    """Lets events of these click hours through."""
    years, names = sorted({hour.day.year for hour in hours}), sorted(map(str, hours))
    # By hour too: of it Delta knows what is in which file, so that others are not opened.
    return [("kind", "=", CLICK_HOUR), ("year", "in", years), ("first_hour", "in", names)]


def click_hours_since(first: Hour) -> list[tuple[str, str, Any]]:
    """Lets events of the click hours from there on through."""
    return [("kind", "=", CLICK_HOUR), ("year", ">=", first.day.year), ("first_hour", ">=", str(first))]

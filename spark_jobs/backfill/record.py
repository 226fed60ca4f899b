"""The record of backfills: who begins or goes on with one, and what is said of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from include.backfills import (
    BEGUN,
    PUBLISHING,
    Backfill,
    UnknownBackfillError,
    read_backfills,
)
from include.errors import FinalError
from include.hours import Hour, HourRange
from include.journal import BACKFILL, Act, journal_row
from include.tables import AGGREGATES
from spark_jobs.lake.journal import SignedAct, append_events
from spark_jobs.lake.lake import Lake

_ACT = "backfill_clicks"


def find_backfill(lake: Lake, backfill_id: str) -> Backfill:
    """The backfill of this id.

    Raises:
        UnknownBackfillError: if there is none.
    """
    known = read_backfills(lake.settings.lake)
    if backfill_id not in known:
        newest = ", ".join(list(known)[-3:]) or "none; there has been no backfill"
        raise UnknownBackfillError(f"no backfill {backfill_id!r}; expected one of (the newest): {newest}")
    return known[backfill_id]


def begin(
    lake: Lake, source: str, log_hours: HourRange, chunk_hours: int, *, is_staged: bool, actor: str | None, because: str
) -> Backfill:
    """The open backfill of exactly these, or a new one.

    Raises:
        ClickmillError: if another backfill is open over some of these hours.
    """
    with lake.locked("begin-backfill"):
        for known in read_backfills(lake.settings.lake).values():
            if not (known.is_open and known.meets(source, log_hours)):
                continue
            of_known = (known.log_hours, known.chunk_hours, known.is_staged)
            if of_known != (log_hours, chunk_hours, is_staged) or known.state == "undoing":
                raise FinalError(blocked_by(known))
            return known
        now = datetime.now(UTC)
        backfill_id = f"{now:%Y%m%dT%H%M%S}-{uuid4().hex[:4]}"
        begun = journal_row(
            Act(backfill_id, _ACT), BACKFILL, backfill_id, BEGUN, now,
            hours=log_hours, source=source, actor=actor, because=because.strip() or None,
            details={"chunk_hours": chunk_hours, "is_staged": is_staged},
        )  # fmt: skip
        append_events(lake, [begun])
        return find_backfill(lake, backfill_id)


def blocked_by(other: Backfill) -> str:
    """Why a backfill cannot begin over hours of this open one, and what to do."""
    staged = ", staged" if other.is_staged else ""
    return (
        f"{other.described} (chunks of {other.chunk_hours} hours{staged}) is {other.state} over some of these hours; "
        "finish it with the same arguments, or give it up: "
        f"clickmill decide-backfill {other.id} --decision drop --help"
    )


def say(lake: Lake, backfill: Backfill, event: str, signed: SignedAct | None = None, **details: Any) -> Backfill:
    """Put an event on record, a person's if ``signed``; returns the backfill as it is then."""
    act = signed.act if signed else Act(backfill.id, _ACT)
    row = journal_row(
        act, BACKFILL, backfill.id, event, datetime.now(UTC),
        hours=backfill.log_hours, source=backfill.source, actor=act.actor, because=act.because, details=details,
    )  # fmt: skip
    if signed:
        signed.decide([row])
    else:
        append_events(lake, [row])
    return find_backfill(lake, backfill.id)


def say_publishing(lake: Lake, backfill: Backfill, hours: list[Hour]) -> None:
    """Put on record what the published tables were before these click hours are replaced in them."""
    versions = {table.name: lake.version(table) for table in AGGREGATES.values()}
    known = {name: number for name, number in versions.items() if number is not None}
    say(lake, backfill, PUBLISHING, versions=known, click_hours=[str(hour) for hour in hours])

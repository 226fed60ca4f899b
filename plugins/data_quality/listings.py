"""The pages that list what a table of the lake has: ``LISTINGS`` has each by its address, and is all that one needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from include.journal import ACT, BEGUN, CLICK_HOUR, SIGNED_ACTS, read_events
from include.tables import JOURNAL, Table
from plugins.data_quality.links import Links
from plugins.data_quality.rendering import as_moment, render_page

MOST_ENTRIES = 200


@dataclass(frozen=True)
class Entry:
    """One section of a list: a heading and paragraphs, as text; marked, if somebody should look at it."""

    heading: str
    paragraphs: Sequence[str]
    is_marked: bool = False


@dataclass(frozen=True)
class Listing:
    """A page: what is listed, from which table, and what it says of none; ``entries`` are a lake's, newest first."""

    title: str
    lead: str
    nothing: str
    table: Table
    entries: Callable[[Path], Iterable[Entry]]


def render_listing(listing: Listing, lake: Path, links: Links) -> tuple[str, str]:
    """The list, and its policy."""
    entries = list(islice(listing.entries(lake), MOST_ENTRIES))
    return render_page("quality_list.html", links, title=listing.title, listing=listing, entries=entries)


def _acts(lake: Path) -> Iterable[Entry]:
    """What people have asked for, and what became of it."""
    events: dict[str, list[dict[str, Any]]] = {}
    for row in read_events(lake, [("act", "in", SIGNED_ACTS)]):
        events.setdefault(row["act_id"], []).append(row)
    return map(_act, sorted(events.values(), key=lambda of_act: of_act[0]["at"], reverse=True))


def _act(events: Sequence[dict[str, Any]]) -> Entry:
    """From its events, oldest first; that of the act itself says what was asked for, another one what was decided."""
    of_act = [row for row in events if row["kind"] == ACT]
    # Of a backfill and its hours the backfill: what became of these quotes the person.
    signed = min((row for row in events if row["actor"]), key=lambda row: row["kind"] == CLICK_HOUR)
    subject = of_act[0]["subject"] if of_act else f"{signed['subject']}: {signed['event'].replace('_', ' ')}"
    state, outcome = "begun, not ended", "It runs, or was killed: ask for it again, and it is finished."
    if of_act and of_act[-1]["event"] != BEGUN:
        state, details = of_act[-1]["event"], of_act[-1]["details"]
        outcome = f"Ended {as_moment(of_act[-1]['at'])} UTC. " + "; ".join(f"{key} {details[key]}" for key in details)
    return Entry(
        f"{signed['act'].replace('_', ' ').capitalize()} {subject}: {state}",
        (f"By {signed['actor']}, {as_moment(events[0]['at'])} UTC", signed["because"], outcome),
        is_marked=state != "completed",
    )


LISTINGS = {
    "audit": Listing(
        "Audit",
        "Who had what decided or changed.",
        "Nobody has decided or changed anything yet",
        JOURNAL,
        _acts,
    ),
}

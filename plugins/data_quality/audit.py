"""The page of the audit: what people had done, by the journal, the newest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from include.journal import ACT, BEGUN, SIGNED_ACTS, read_events
from plugins.data_quality.links import Links
from plugins.data_quality.rendering import render_page

MOST_ACTS = 200
#: What an act is called that has not ended.
UNFINISHED = "begun, not ended"


@dataclass(frozen=True)
class Act:
    """What a person has asked for: what became of it, and of its last event when, and the details in words."""

    act: str
    subject: str
    actor: str
    because: str
    begun_at: datetime
    state: str
    ended_at: datetime | None
    details: str


def newest_acts(lake: Path) -> list[Act]:
    """The newest acts that people have asked for, the newest first."""
    events: dict[str, list[dict[str, Any]]] = {}
    for row in read_events(lake, [("act", "in", SIGNED_ACTS)]):
        events.setdefault(row["act_id"], []).append(row)
    acts = [_act(of_act) for of_act in events.values()]
    return sorted(acts, key=lambda act: act.begun_at, reverse=True)[:MOST_ACTS]


def _act(events: Sequence[dict[str, Any]]) -> Act:
    """From its events, oldest first; that of the act itself says what was asked for, another one what was decided."""
    of_act = [row for row in events if row["kind"] == ACT]
    signed = next(row for row in events if row["actor"])
    ended = of_act[-1] if of_act and of_act[-1]["event"] != BEGUN else None
    return Act(
        signed["act"],
        of_act[0]["subject"] if of_act else f"{signed['subject']}: {signed['event'].replace('_', ' ')}",
        signed["actor"],
        signed["because"],
        signed["at"],
        ended["event"] if ended else UNFINISHED,
        ended["at"] if ended else None,
        "; ".join(f"{name} {value}" for name, value in ended["details"].items()) if ended else "",
    )


def render_audit(acts: Sequence[Act], links: Links) -> tuple[str, str]:
    """The list, and its policy."""
    return render_page("quality_audit.html", links, title="Audit", acts=acts, unfinished=UNFINISHED)

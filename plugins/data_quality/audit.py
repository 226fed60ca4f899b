"""The page of the audit: what people had done, the newest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from include.stored_rows import read_rows
from include.tables import AUDIT
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
    """The newest acts of the audit, the newest first."""
    events: dict[str, dict[str, dict[str, Any]]] = {}
    for row in read_rows(lake, AUDIT, AUDIT.column_names, []):
        events.setdefault(row["audit_id"], {})[row["event"]] = row
    acts = (_act(of) for of in events.values())
    return sorted(acts, key=lambda act: act.begun_at, reverse=True)[:MOST_ACTS]


def _act(events: dict[str, dict[str, Any]]) -> Act:
    ended = events.get("completed") or events.get("failed")
    begun = events.get("begun") or ended
    assert begun is not None
    return Act(
        begun["act"],
        begun["subject"],
        begun["actor"],
        begun["because"],
        begun["at"],
        ended["event"] if ended else UNFINISHED,
        ended["at"] if ended else None,
        "; ".join(f"{name} {value}" for name, value in ended["details"] or ()) if ended else "",
    )


def render_audit(acts: Sequence[Act], links: Links) -> tuple[str, str]:
    """The list, and its policy."""
    return render_page("quality_audit.html", links, title="Audit", acts=acts, unfinished=UNFINISHED)

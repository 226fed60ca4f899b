"""The page of backfills: what became of each, what to do next, and the comparison of those that were staged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from include.backfills import Backfill, read_backfills, undo_until
from include.settings import Settings
from plugins.data_quality.links import Links
from plugins.data_quality.questions import Questions
from plugins.data_quality.rendering import render_page
from plugins.data_quality.rights import Rights

MOST_BACKFILLS = 100
#: What is open is marked, so that it is seen.
_STATES = {
    "running": "running",
    "waiting": "waits for a decision",
    "swapping": "being published",
    "published": "published",
    "dropped": "dropped",
    "undoing": "being undone",
    "undone": "undone",
}


@dataclass(frozen=True)
class Shown:
    """A backfill, the state in words, whether its comparison is there, and until when it can be undone.

    ``question`` is the run that asks about it, None if none does.
    """

    of: Backfill
    state: str
    has_comparison: bool
    undo_until: datetime | None
    question: str | None


def shown_backfills(settings: Settings, questions: Questions) -> list[Shown]:
    """The newest backfills of the lake, the newest first."""
    newest = list(read_backfills(settings.lake).values())[: -MOST_BACKFILLS - 1 : -1]
    return [
        Shown(
            backfill,
            _STATES[backfill.state],
            comparison_file(settings, backfill.id).is_file(),
            undo_until(settings.lake, backfill) if backfill.state == "published" else None,
            questions.of_backfill(backfill),
        )
        for backfill in newest
    ]


def comparison_file(settings: Settings, backfill_id: str) -> Path:
    """Where the comparison of a staged backfill is."""
    return settings.reports / "backfills" / f"{backfill_id}.html"


def render_backfills(shown: Sequence[Shown], links: Links, rights: Rights, newest_undo: int) -> tuple[str, str]:
    """The list, and its policy; ``newest_undo`` is the number of the newest run that undid one."""
    can_decide = rights.decide_backfills and any(backfill.question for backfill in shown)
    can_undo = rights.undo and any(backfill.undo_until for backfill in shown)
    return render_page(
        "quality_backfills.html",
        links,
        title="Backfills",
        backfills=shown,
        rights=rights,
        newest_undo=newest_undo,
        may_act=can_decide or can_undo,
    )

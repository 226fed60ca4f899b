"""What the pages on data quality share: signs, numbers and moments as text, and the way to HTML."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from include.pages.render import render_served_page
from include.quality_index import Result
from include.tables import QUARANTINE_REASONS
from plugins.data_quality.links import Links

_TEMPLATES = Path(__file__).resolve().parent / "templates"

#: What a state is called, and the sign that stands for it beside its colour.
SIGNS = {
    "pass": ("✓", "passed"),
    "undecided": ("?", "not enough history, or not final"),
    "warning": ("!", "warning"),
    "fail": ("✕", "failed"),
    "held": ("‖", "held"),
    "published": ("✓", "published"),
    "published_anyway": ("»", "published anyway"),
    "dropped": ("⊘", "dropped"),
    "released": ("↺", "released"),
    "missing": ("∅", "missing"),
    "none": ("", "not checked"),
}


def render_page(template: str, links: Links, *, may_act: bool = False, **values: Any) -> tuple[str, str]:
    """The page and its policy; with the script that asks Airflow's API, if there is something to do on it."""
    return render_served_page(
        _TEMPLATES / template,
        ["leave_frame.js", *(["acts.js"] if may_act else [])],
        "quality.css",
        may_act=may_act,
        **values,
        links=links,
        SIGNS=SIGNS,
        QUARANTINE_REASONS=QUARANTINE_REASONS,
        as_number=as_number,
        as_moment=as_moment,
        expected_range=expected_range,
    )


def render_message(links: Links, title: str, *sentences: str, ways: Sequence[tuple[str, str]] = ()) -> tuple[str, str]:
    """A page of a few sentences and of ways on (text and address), and its policy."""
    return render_page("quality_message.html", links, title=title, sentences=sentences, ways=ways)


def advice_of(results: Sequence[Result]) -> tuple[str, ...]:
    """What to do about these results, each advice once."""
    return tuple(dict.fromkeys(result.advice for result in results if result.advice))


def expected_range(result: Result) -> str:
    """``0.01 to 0.05``, ``at most 5``, ``exactly 0``; empty without bounds."""
    lowest, highest = result.lowest, result.highest
    if lowest is not None and highest is not None:
        return f"exactly {as_number(lowest)}" if lowest == highest else f"{as_number(lowest)} to {as_number(highest)}"
    if lowest is not None:
        return f"at least {as_number(lowest)}"
    return f"at most {as_number(highest)}" if highest is not None else ""


def as_moment(moment: str | datetime | None) -> str:
    """``2026-03-01 05:07`` of a moment, also as the index has it; empty of none."""
    return str(moment)[:16].replace("T", " ") if moment else ""


def as_number(value: float | None) -> str:
    """Four digits at most, large numbers whole; empty for none."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"

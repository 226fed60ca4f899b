"""Log hours by their numbers."""

from __future__ import annotations

from include.hours import Hour


def hour(number: int) -> Hour:
    return Hour.parse("2026-03-01T00").plus(number)

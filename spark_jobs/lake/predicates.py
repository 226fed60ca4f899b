"""Constant predicates for the hours of a table's rows, in SQL."""

from __future__ import annotations

from collections.abc import Iterable

from include.log_hours import Hour, hours_predicate
from include.texts import as_literal


def log_hours_predicate(source: str, hours: Iterable[Hour]) -> str:
    """A constant predicate for a source's log hours, on partition columns only."""
    return f"source = {as_literal(source)} AND ({hours_predicate(hours, 'log_date', 'log_hour')})"


def click_hours_predicate(hours: Iterable[Hour]) -> str:
    """A constant predicate for click hours."""
    return hours_predicate(hours, "click_date", "click_hour")

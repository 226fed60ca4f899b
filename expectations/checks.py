"""What a check is, and the few ways in which a number of a metric frame is judged.

Critical: a count is wrong or cannot be trusted, and the hour is held. Warning: published, and shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import great_expectations.expectations as gxe
from great_expectations.expectations.expectation import Expectation

from include.check_settings import Threshold

CRITICAL, WARNING = "critical", "warning"


@dataclass(frozen=True)
class Check:
    """One expectation in words: ``holds`` is what it says, ``reason`` why it is there and what to do.

    ``name`` is unique in its suite and stays when the wording changes; ``table`` is the one that was looked at.
    ``rows`` is the rule of ``spark_jobs/quality/row_rules.py`` that the single rows break, where there are some.
    ``finding`` is the column of the frame that says more of what was found. Where a judged value is null nothing is
    judged: the check has no outcome there, or the one that ``when_null`` names.
    """

    suite: str
    name: str
    table: str
    expectation: Expectation
    severity: str
    holds: str
    reason: str
    rows: str | None = None
    finding: str | None = None
    when_null: str | None = None


def between(column: str, lowest: float | None, highest: float | None) -> Expectation:
    """Every value is between these, both included."""
    return gxe.ExpectColumnValuesToBeBetween(column=column, min_value=lowest, max_value=highest)


def below(column: str, limit: float) -> Expectation:
    """Every value is less than the limit."""
    return gxe.ExpectColumnValuesToBeBetween(column=column, max_value=limit, strict_max=True)


def zero(column: str) -> Expectation:
    """There is none of what the column counts."""
    return between(column, 0, 0)


def equal(one: str, other: str) -> Expectation:
    """Two columns have the same value."""
    return gxe.ExpectColumnPairValuesToBeEqual(column_A=one, column_B=other)


def one_of(column: str, *values: str) -> Expectation:
    """Every value is one of these."""
    return gxe.ExpectColumnValuesToBeInSet(column=column, value_set=list(values))


def at_most(
    threshold: Threshold,
    suite: str,
    name: str,
    table: str,
    column: str,
    holds: Callable[[float], str],
    reason: str,
    rows: str | None = None,
    finding: str | None = None,
) -> list[Check]:
    """A check for each bound of the threshold; the critical one's name ends in ``_critical``."""
    bounds = [(WARNING, name, threshold.warning), (CRITICAL, f"{name}_critical", threshold.critical)]
    return [
        Check(suite, check, table, between(column, None, bound), severity, holds(bound), reason, rows, finding)
        for severity, check, bound in bounds
        if bound is not None
    ]


def percent(share: float) -> str:
    """``5%``, ``0.25%``."""
    return f"{share * 100:g}%"

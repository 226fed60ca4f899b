"""What a check is, and the few ways in which a number of a metric frame is judged.

Critical: a count is wrong or cannot be trusted, and the hour is held. Warning: published, and shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from great_expectations.expectations.expectation import Expectation

from expectations.metric_expectations import ExpectMetricsToBeEqual, ExpectMetricToBeBetween, ExpectMetricToBeInSet
from include.check_settings import Threshold

CRITICAL, WARNING = "critical", "warning"


@dataclass(frozen=True)
class RowRule:
    """The single rows of a check's table by which it is judged; conditions are in Spark's SQL.

    Those of which ``counted`` is true are counted in the one pass over all rows: their number, or with ``as_share``
    their share of all, is the frame's column ``name``. Without it the frame has the number from elsewhere.

    Examples are of the rows of which ``shown`` is true, or of those whose key ``same`` another row has too, unless it
    is null in part. Without either there are none.
    """

    name: str
    counted: str | None = None
    shown: str | None = None
    same: tuple[str, ...] = ()
    as_share: bool = False


@dataclass(frozen=True, kw_only=True)
class Check:
    """One expectation in words: ``holds`` is what it says, ``reason`` why it is there and what to do.

    ``name`` is unique in its suite and stays when the wording changes; ``table`` is the one that was looked at.
    ``rows`` says which single rows it is about, if it is about any.
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
    rows: RowRule | None = None
    finding: str | None = None
    when_null: str | None = None


def row_check(
    *, suite: str, name: str, table: str, counted_as: str, broken: str, severity: str, holds: str, reason: str
) -> Check:
    """``broken``, in Spark's SQL, is true of no row; ``counted_as`` is the frame's column of the number of those."""
    return Check(
        suite=suite,
        name=name,
        table=table,
        expectation=zero(counted_as),
        severity=severity,
        holds=holds,
        reason=reason,
        rows=RowRule(counted_as, counted=broken, shown=broken),
    )


def counted_rows(checks: Iterable[Check], table: str) -> list[RowRule]:
    """What these checks have counted in a table, each once."""
    rules = (check.rows for check in checks if check.table == table)
    return list({rule.name: rule for rule in rules if rule is not None and rule.counted is not None}.values())


def between(column: str, lowest: float | None, highest: float | None) -> Expectation:
    """Every value is between these, both included."""
    return ExpectMetricToBeBetween(column=column, min_value=lowest, max_value=highest)


def below(column: str, limit: float) -> Expectation:
    """Every value is less than the limit."""
    return ExpectMetricToBeBetween(column=column, max_value=limit, strict_max=True)


def zero(column: str) -> Expectation:
    """There is none of what the column counts."""
    return between(column, 0, 0)


def equal(column: str, other: str) -> Expectation:
    """Two columns have the same value."""
    return ExpectMetricsToBeEqual(column_A=column, column_B=other)


def one_of(column: str, *values: str) -> Expectation:
    """Every value is one of these."""
    return ExpectMetricToBeInSet(column=column, value_set=list(values))


def at_most(
    threshold: Threshold,
    *,
    suite: str,
    name: str,
    table: str,
    column: str,
    holds: Callable[[float], str],
    reason: str,
    rows: RowRule | None = None,
    finding: str | None = None,
) -> list[Check]:
    """A check for each bound of the threshold; the critical one's name ends in ``_critical``."""
    bounds = [(WARNING, name, threshold.warning), (CRITICAL, f"{name}_critical", threshold.critical)]
    return [
        Check(
            suite=suite,
            name=check,
            table=table,
            expectation=between(column, None, bound),
            severity=severity,
            holds=holds(bound),
            reason=reason,
            rows=rows,
            finding=finding,
        )
        for severity, check, bound in bounds
        if bound is not None
    ]


def percent(share: float) -> str:
    """``5%``, ``0.25%``."""
    return f"{share * 100:g}%"

"""What the index answers with, but for events: counts, results and points."""

from __future__ import annotations

from dataclasses import dataclass

#: From good to bad; the state of several is the worst. ``undecided``: not enough history to judge, or not final.
STATES = ("pass", "undecided", "warning", "fail")


@dataclass(frozen=True)
class Counts:
    """How many checks had which outcome; ``warnings`` and ``failures`` are failed ones by severity."""

    passed: int = 0
    undecided: int = 0
    warnings: int = 0
    failures: int = 0

    @property
    def state(self) -> str:
        """The worst of ``STATES`` among them; ``missing`` of none."""
        if self.failures:
            return "fail"
        if self.warnings:
            return "warning"
        if self.passed:
            return "pass"
        return "undecided" if self.undecided else "missing"

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.passed + other.passed,
            self.undecided + other.undecided,
            self.warnings + other.warnings,
            self.failures + other.failures,
        )


@dataclass(frozen=True)
class Result:
    """What the newest run found for one check of one partition; as ``quality_results`` has it."""

    suite: str
    partition: str
    check_id: str
    run_id: str
    validated_at: str
    source: str | None
    series: str
    hour: str
    checked_table: str
    severity: str
    outcome: str
    observed: str | None
    observed_value: float | None
    lowest: float | None
    highest: float | None
    expectation: str
    advice: str | None
    examples: tuple[str, ...]
    link: str | None

    @property
    def state(self) -> str:
        """One of ``STATES``."""
        return state_of(self.outcome, self.severity)


@dataclass(frozen=True)
class Point:
    """The value of a check at one hour, with its bounds; None where there is no number."""

    hour: str
    value: float | None
    lowest: float | None
    highest: float | None
    state: str
    partition: str


@dataclass(frozen=True)
class Run:
    """What one run found for one suite and partition."""

    suite: str
    partition: str
    run_id: str
    validated_at: str
    counts: Counts


def state_of(outcome: str, severity: str) -> str:
    """One of ``STATES`` for an outcome of ``quality_results``."""
    if outcome == "pass":
        return "pass"
    if outcome in ("not_enough_history", "not_final"):
        return "undecided"
    return "fail" if severity == "critical" else "warning"


def series_of(partition: str, hour: str) -> str:
    """What stays when the hour changes: the source, the operator; empty for click hours."""
    return partition.partition(hour)[0].strip()

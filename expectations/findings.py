"""Judge numbers whose bounds differ from hour to hour, each with its own words: what the past says about an hour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from expectations.checks import Check
from expectations.judge import Outcome, judge
from include.hours import Hour

#: The outcome where there is too little to judge by: neither a pass nor a failure.
NOT_ENOUGH_HISTORY = "not_enough_history"


@dataclass(frozen=True, order=True)
class Partition:
    """A source's log hour; a click hour when it is of no source."""

    hour: Hour
    source: str | None = None

    def __str__(self) -> str:
        return f"{self.source} {self.hour}" if self.source else str(self.hour)


@dataclass(frozen=True)
class Finding:
    """What one check found of one partition.

    ``judged`` is what the check's expectation looks at; None when there is not enough history. ``value`` is the number
    that a reader knows, and ``lowest`` and ``highest`` are in its unit; None for none.
    """

    judged: float | None
    observed: str
    value: float | None = None
    lowest: float | None = None
    highest: float | None = None
    examples: tuple[str, ...] = ()


#: By partition and the name of the check, which is the column that it judges.
Findings = Mapping[tuple[Partition, str], Finding]


def judge_findings(page_name: str, findings: Findings, checks: Sequence[Check], docs_folder: Path) -> list[Outcome]:
    """One outcome per finding; Data Docs as ``<docs_folder>/<page_name>.html``."""
    partitions = {str(partition): partition for partition, _ in findings}
    columns = [check.name for check in checks]
    frame = pd.DataFrame(
        [
            {"partition": name, "source": partition.source, "hour": str(partition.hour)}
            | {column: _judged(findings.get((partition, column))) for column in columns}
            for name, partition in partitions.items()
        ]
    )
    outcomes = []
    for outcome in judge(page_name, frame, checks, docs_folder):
        finding = findings.get((partitions[outcome.partition], outcome.check.name))
        if finding is not None:
            outcomes.append(
                replace(
                    outcome,
                    observed=finding.observed,
                    observed_value=finding.value,
                    lowest=finding.lowest,
                    highest=finding.highest,
                    examples=finding.examples,
                )
            )
    return outcomes


def _judged(finding: Finding | None) -> float:
    return float("nan") if finding is None or finding.judged is None else finding.judged

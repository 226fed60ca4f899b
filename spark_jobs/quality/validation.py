"""What one run of validate_clicks found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from expectations.judge import Outcome
from include.holds import ClickHourState
from include.hours import Hour
from include.job_arguments import JobArguments
from spark_jobs.hours.touched_hours import TouchedHours


@dataclass(frozen=True)
class Validation:
    """What one run found: the ``outcomes`` of all checks, with examples of the rows behind those that failed."""

    run_id: str
    validated_at: datetime
    arguments: JobArguments
    touched: TouchedHours
    outcomes: list[Outcome]
    seconds: float
    data_docs: Path
    newly_held: Mapping[Hour, ClickHourState] = field(default_factory=dict)

    @property
    def critical_failures(self) -> list[Outcome]:
        """What stops publishing."""
        return [outcome for outcome in self.outcomes if outcome.is_critical_failure]

    @property
    def warnings(self) -> list[Outcome]:
        """What is published all the same."""
        return [outcome for outcome in self.outcomes if outcome.has_failed and not outcome.is_critical_failure]

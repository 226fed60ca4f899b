"""What load each instance of a grouping had, measured while the job does its work: rows of grouping_metrics."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

from pyspark.sql import DataFrame, Observation

from include.job_arguments import JobArguments
from spark_jobs.transforms.count_clicks import load_per_instance
from spark_jobs.transforms.groupings import Grouping, instances_of


@dataclass(frozen=True)
class _Operator:
    name: str
    grouping: Grouping
    instances: int
    observation: Observation


class GroupingMetrics:
    """The load of one run's operators."""

    def __init__(self, job: str, arguments: JobArguments) -> None:
        self._job, self._arguments = job, arguments
        self._run_id, self._measured_at = uuid4().hex, datetime.now(UTC)
        self._operators: list[_Operator] = []

    def observe(self, counts: DataFrame, operator: str, key: str, grouping: Grouping) -> DataFrame:
        """The same counts, with ``instance_id``, whose load becomes known when they are computed."""
        instances = instances_of(grouping, counts)
        observation = Observation(f"{operator}-{self._run_id}")
        self._operators.append(_Operator(operator, grouping, instances, observation))
        return counts.observe(observation, *load_per_instance(key, instances))

    def rows(self) -> list[tuple[object, ...]]:
        """Rows of ``grouping_metrics``, one per operator and instance; after the counts have been written."""
        return [row for operator in self._operators for row in self._rows_of(operator)]

    def _rows_of(self, operator: _Operator) -> list[tuple[object, ...]]:
        load = operator.observation.get
        rows: list[tuple[object, ...]] = []
        for instance in range(operator.instances):
            clicks, busiest = load[f"rows_{instance}"] or 0, load[f"busiest_rows_{instance}"] or 0
            # No clicks, or so few that the clock was looked at once.
            seconds = (load[f"nanoseconds_{instance}"] or 0) / 1e9 or None
            rows.append(
                (
                    self._run_id,
                    self._measured_at,
                    self._job,
                    operator.name,
                    self._arguments.source,
                    str(self._arguments.log_hours),
                    operator.grouping.described(),
                    operator.instances,
                    instance,
                    clicks,
                    load[f"keys_{instance}"],
                    seconds,
                    clicks / seconds if seconds else None,
                    load[f"busiest_{instance}"],
                    busiest / clicks if clicks else 0.0,
                )
            )
        return rows

    def described(self) -> list[str]:
        """A line per operator: its grouping, and how even the load was."""
        lines = []
        for operator in self._operators:
            rows = [operator.observation.get[f"rows_{instance}"] or 0 for instance in range(operator.instances)]
            mean = sum(rows) / len(rows)
            skew = f"{max(rows) / mean:.2f}" if mean else "none"
            lines.append(
                f"  {operator.name}: {operator.grouping.described()}; clicks per instance {min(rows):,} to "
                f"{max(rows):,}, skew {skew}"
            )
        return lines

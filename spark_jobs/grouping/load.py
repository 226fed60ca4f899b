"""Clicks counted as in ``aggregate``, with the load that each instance of a grouping had: rows of grouping_metrics.

What an instance counted is observed in the query itself; how long it took, Spark knows of the task that it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, Observation, SparkSession

from include.counting import CountKey
from include.job_arguments import JobArguments
from include.settings import Settings
from include.tables import GROUPING_METRICS
from spark_jobs.aggregate.groupings import Grouping, instances_of
from spark_jobs.aggregate.job import aggregate
from spark_jobs.engine.spark_status import SparkStatus, Stage
from spark_jobs.engine.steps import marked
from spark_jobs.grouping.partitioning import load_per_instance
from spark_jobs.lake.lake import Lake


def aggregate_measured(spark: SparkSession, settings: Settings, arguments: JobArguments) -> list[str]:
    """As ``aggregate``, with the load of each instance written to ``grouping_metrics``, and a line on each operator."""
    metrics = GroupingMetrics(spark, "aggregate_clicks", arguments, gives_on=True)
    lines = aggregate(spark, settings, arguments, metrics.observed)
    Lake(spark, settings).append_rows(GROUPING_METRICS, metrics.rows())
    return [*lines, *metrics.described()]


@dataclass(frozen=True)
class _Operator:
    name: str
    grouping: Grouping
    instances: int
    observation: Observation

    @property
    def observed(self) -> dict[str, Any]:
        """See ``load_per_instance``; all null where there was nothing to count: Spark leaves the query out then."""
        return self.observation.get or defaultdict(lambda: None)

    @property
    def rows(self) -> list[int]:
        """The rows that moved to each instance."""
        return [self.observed[f"rows_{instance}"] or 0 for instance in range(self.instances)]


class GroupingMetrics:
    """The load of one run's operators; ``gives_on`` if their counts go to other tasks, which write them."""

    def __init__(self, spark: SparkSession, job: str, arguments: JobArguments, *, gives_on: bool = False) -> None:
        self._spark, self._job, self._arguments, self._gives_on = spark, job, arguments, gives_on
        self._run_id = uuid4().hex
        self._operators: list[_Operator] = []

    @contextmanager
    def observed(self, parts: DataFrame, key: CountKey, grouping: Grouping) -> Iterator[DataFrame]:
        """The same counts, of ``count_per_instance``; their load becomes known as they are computed in this context."""
        instances = instances_of(grouping, parts)
        operator = f"count_by_{key}"
        observation = Observation(self._mark(operator))
        self._operators.append(_Operator(operator, grouping, instances, observation))
        with marked(self._spark, self._mark(operator)):
            yield parts.observe(observation, *load_per_instance(key, grouping, instances))

    def rows(self) -> list[dict[str, Any]]:
        """Rows of ``grouping_metrics``, one per operator and instance; after the counts have been computed."""
        status = SparkStatus.of(self._spark)
        counted = {self._mark(operator.name): operator.rows for operator in self._operators if any(operator.rows)}
        stages = status.stages_that_read(counted, gives_on=self._gives_on) if status is not None and counted else {}
        # Not before: who has waited for the lake has run later than who has not.
        measured_at = datetime.now(UTC)
        return [
            row | {"measured_at": measured_at}
            for operator in self._operators
            for row in self._rows_of(operator, _seconds(stages.get(self._mark(operator.name)), operator.rows))
        ]

    def _mark(self, operator: str) -> str:
        return f"{operator}-{self._run_id}"

    def _rows_of(self, operator: _Operator, seconds: Sequence[float | None]) -> list[dict[str, Any]]:
        load = operator.observed
        return [
            {
                "run_id": self._run_id,
                "job": self._job,
                "operator": operator.name,
                "source": self._arguments.source,
                "log_hours": str(self._arguments.log_hours),
                "grouping": operator.grouping.described(),
                "instances": operator.instances,
                "instance_id": instance,
                "rows": clicks,
                "keys": load[f"keys_{instance}"] or 0,
                "seconds": took,
                "rows_per_second": clicks / took if took else None,
                "busiest_key": load[f"busiest_{instance}"],
                "busiest_key_share": (load[f"busiest_rows_{instance}"] or 0) / clicks if clicks else 0.0,
            }
            for instance, (clicks, took) in enumerate(zip(operator.rows, seconds, strict=True))
        ]

    def described(self) -> list[str]:
        """A line per operator: its grouping, and how even the load was."""
        lines = []
        for operator in self._operators:
            rows = operator.rows
            mean = sum(rows) / len(rows)
            skew = f"{max(rows) / mean:.2f}" if mean else "none"
            lines.append(
                f"  {operator.name}: {operator.grouping.described()}; rows per instance {min(rows):,} to "
                f"{max(rows):,}, skew {skew}"
            )
        return lines


def _seconds(stage: Stage | None, rows: Sequence[int]) -> list[float | None]:
    """How long the task of each instance ran; null for one without clicks, and where Spark does not say."""
    if stage is None:
        return [None] * len(rows)
    return [task.run_ms / 1000 or None if number else None for task, number in zip(stage.tasks, rows, strict=True)]

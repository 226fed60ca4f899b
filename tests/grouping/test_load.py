"""The load of instances as rows of grouping_metrics, without a Spark that counts."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from include.hours import Hour, HourRange
from include.job_arguments import JobArguments
from spark_jobs.grouping import load

ARGUMENTS = JobArguments("web", HourRange.single(Hour.parse("2026-03-01T05")))


def test_loads_are_of_when_they_were_measured_not_of_when_the_run_began_to_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(load.SparkStatus, "of", lambda spark: None)
    metrics = load.GroupingMetrics(cast(Any, None), "aggregate_clicks", ARGUMENTS)
    grouping, observation = SimpleNamespace(described=lambda: "combine"), SimpleNamespace(get={})
    metrics._operators.append(load._Operator("count_by_url", cast(Any, grouping), 2, cast(Any, observation)))
    lake_is_ours = datetime.now(UTC)
    rows = metrics.rows()
    assert len(rows) == 2
    (measured_at,) = {row["measured_at"] for row in rows}
    assert measured_at >= lake_is_ours

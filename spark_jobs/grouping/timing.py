"""How fast clicks are counted by groupings, beside what was expected of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from include.counting import CountKey
from include.job_arguments import JobArguments
from spark_jobs.aggregate.count import complete_counts, count_per_instance
from spark_jobs.aggregate.groupings import Grouping
from spark_jobs.grouping.advice import GroupingLoad, KeyDistribution, Measurement
from spark_jobs.grouping.load import GroupingMetrics

#: An odd number, for there to be one in the middle.
RUNS = 3


@dataclass(frozen=True)
class _Run:
    seconds: float
    rates: tuple[float | None, ...]


def measure_counts(
    clicks: DataFrame,
    arguments: JobArguments,
    distribution: KeyDistribution,
    groupings: Sequence[tuple[Grouping, GroupingLoad]],
) -> list[Measurement]:
    """Count the clicks by each grouping ``RUNS`` times, as ``aggregate_clicks`` does but for the writing.

    The runs take turns, so that what else the machine does falls on all alike; a first turn warms up and is not
    counted. The measured speed-up is over one instance of the same grouping, else over global, else not known.
    """
    turns = [
        [_count(clicks, distribution.key, grouping, arguments) for grouping, _ in groupings] for _ in range(RUNS + 1)
    ][1:]
    middle = [
        sorted((turn[number] for turn in turns), key=lambda run: run.seconds)[RUNS // 2]
        for number in range(len(groupings))
    ]
    alone = {
        load.grouping: run.seconds for (_, load), run in zip(groupings, middle, strict=True) if load.instances == 1
    }
    return [
        Measurement(
            described=load.described,
            instances=load.instances,
            clicks=distribution.clicks,
            seconds=run.seconds,
            predicted_speed_up=load.speed_up,
            measured_speed_up=seconds_alone / run.seconds
            if (seconds_alone := alone.get(load.grouping, alone.get("global")))
            else None,
            rates=run.rates,
        )
        for (_, load), run in zip(groupings, middle, strict=True)
    ]


def _count(clicks: DataFrame, key: CountKey, grouping: Grouping, arguments: JobArguments) -> _Run:
    metrics = GroupingMetrics(clicks.sparkSession, "advise_grouping", arguments)
    start = time.perf_counter()
    with metrics.observed(count_per_instance(clicks, key, grouping), key, grouping) as parts:
        complete_counts(parts, key, grouping).write.format("noop").mode("overwrite").save()
    seconds = time.perf_counter() - start
    return _Run(seconds, tuple(row["rows_per_second"] for row in metrics.rows()))

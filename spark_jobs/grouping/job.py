"""The load of groupings on real clicks, measured or counted, and what they would cost."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from include.counting import CountKey, CountSettings
from include.errors import ClickmillError, UsageError
from include.hours import Hour, log_hour_of, log_hours_predicate
from include.job_arguments import JobArguments
from include.settings import Settings
from include.sources import choose_sources
from include.tables import CLICKS
from spark_jobs.aggregate.groupings import GlobalGrouping, Grouping, grouping_of
from spark_jobs.engine.session import core_count, files_kept_whole
from spark_jobs.engine.steps import step
from spark_jobs.grouping.advice import (
    GROUPINGS,
    INSTANCE_COUNTS,
    KEYS,
    MAX_INSTANCES,
    Advice,
    GroupingLoad,
    KeyClicks,
    KeyDistribution,
    Salting,
    advise,
    salting,
    with_measurements,
)
from spark_jobs.grouping.partitioning import key_distribution, loads
from spark_jobs.grouping.timing import measure_counts
from spark_jobs.hours.touched_hours import touched_click_hours
from spark_jobs.lake.lake import Lake

_OWN_NUMBER = ("fifo", "global")


#: Every grouping partitions the clicks over every number of instances; more clicks say no more about their keys.
MOST_CLICKS = 1_500_000


@dataclass(frozen=True)
class AdviceRequest:
    """What advice is asked for; ``salts`` takes the place of the recommended number.

    Log hours that have at most ``most_clicks`` together are looked at; None: all.

    Raises:
        UsageError: if it does not fit together.
    """

    key: CountKey
    instances: tuple[int, ...] = INSTANCE_COUNTS
    groupings: tuple[str, ...] = ()
    expression: str | None = None
    salts: int | None = None
    most_clicks: int | None = MOST_CLICKS

    def __post_init__(self) -> None:
        if self.key not in KEYS:
            raise UsageError(f"--key {self.key}: expected one of {', '.join(KEYS)}")
        for count in self.instances or (0,):
            if not 1 <= count <= MAX_INSTANCES:
                raise UsageError(
                    f"--instances {count}: expected whole numbers from 1 to {MAX_INSTANCES}, such as 1,2,4"
                )
        for name in self.groupings:
            if name not in GROUPINGS:
                raise UsageError(f"--groupings {name}: expected some of {', '.join(GROUPINGS)}")
        if self.groupings and ("custom" in self.groupings) != (self.expression is not None):
            raise UsageError("--expression belongs to grouping custom, and it needs one")
        if self.expression is not None and not self.expression.strip():
            raise UsageError("--expression is empty; expected SQL such as substring(try_parse_url(url, 'PATH'), 2, 1)")
        if self.salts is not None and not 1 <= self.salts <= max(self.instances):
            raise UsageError(
                f"--salt {self.salts}: expected 1 to {max(self.instances)}, the largest number of instances"
            )

    @property
    def counts(self) -> list[int]:
        """The numbers of instances, rising."""
        return sorted(set(self.instances))

    @property
    def chosen(self) -> tuple[str, ...]:
        """The groupings, in the order of preference."""
        if self.groupings:
            return tuple(name for name in GROUPINGS if name in self.groupings)
        return tuple(name for name in GROUPINGS if name != "custom" or self.expression is not None)


@dataclass(frozen=True)
class _Candidate:
    name: str
    grouping: Grouping
    salting: Salting | None

    @property
    def partitioned_by(self) -> Grouping:
        """One instance gets the same rows from all."""
        has_one_instance = getattr(self.grouping, "instances", None) == 1
        return GlobalGrouping() if has_one_instance else self.grouping


def give_advice(
    spark: SparkSession,
    settings: Settings,
    arguments: JobArguments,
    request: AdviceRequest,
    *,
    is_measured: bool = False,
) -> Advice:
    """Advice on the clicks of the log hours, from two passes over them; measured by counting them too if asked.

    Raises:
        UsageError: if the expression cannot be used on clicks.
        ClickmillError: if a log hour has not been ingested, there are no clicks, or the expression fails on them.
    """
    lake = Lake(spark, settings)
    sources = choose_sources(settings, arguments.source)
    accounts = touched_click_hours(lake, sources, arguments.log_hours).accounts
    hours = _drawn(accounts, request.most_clicks)
    predicate = " OR ".join(f"({log_hours_predicate(source.name, hours)})" for source in sources)
    clicks = lake.read(CLICKS).where(predicate)
    if request.expression is not None:
        _grouping("custom", request, 1, None).require_columns(clicks)
    # So that fifo has an instance for each file.
    with files_kept_whole(spark):
        with step(spark, "count clicks per key"):
            rows = key_distribution(clicks, request.key, request.counts).collect()
        distribution = _distribution(request, rows)
        if not distribution.clicks:
            raise ClickmillError(
                f"no clicks of {arguments.source} in the log hours {arguments.log_hours}: "
                "there is nothing to partition; "
                "name log hours with clicks (ingest_accounting, column accepted)"
            )
        candidates = _candidates(request, distribution)
        with step(spark, "partition clicks"):
            loads = _repartition(clicks, request, candidates)
        drawn = len(hours) if len(hours) < len(arguments.log_hours) else None
        advice = advise(distribution, arguments.source, str(arguments.log_hours), loads, core_count(spark), drawn)
        if not is_measured:
            return advice
        pairs = [
            (candidate.grouping, load)
            for candidate, load in zip(candidates, loads, strict=True)
            if load.instances <= MAX_INSTANCES
        ]
        pairs.sort(key=lambda pair: advice.loads.index(pair[1]))
        with step(spark, "measure counts"):
            return with_measurements(advice, measure_counts(clicks, arguments, distribution, pairs))


def _drawn(accounts: Sequence[Mapping[str, Any]], most_clicks: int | None) -> list[Hour]:
    """The log hours to look at: all, or as many drawn ones as have at most ``most_clicks`` together; at least one."""
    clicks: Counter[Hour] = Counter()
    for account in accounts:
        clicks[log_hour_of(account)] += account["accepted"]
    if most_clicks is None or clicks.total() <= most_clicks:
        return sorted(clicks)
    drawn = sorted(+clicks)
    Random(0).shuffle(drawn)
    totals = list(accumulate(clicks[hour] for hour in drawn))
    return sorted(drawn[: max(1, bisect_right(totals, most_clicks))])


def _candidates(request: AdviceRequest, distribution: KeyDistribution) -> list[_Candidate]:
    most = max(request.instances)
    candidates = []
    for count in request.counts:
        split = salting(distribution, count, most, request.salts)
        for name in request.chosen:
            if name not in _OWN_NUMBER:
                salts = split if name == "salted_fields" else None
                candidates.append(_Candidate(name, _grouping(name, request, count, salts), salts))
    return candidates + [
        _Candidate(name, _grouping(name, request, 1, None), None) for name in request.chosen if name in _OWN_NUMBER
    ]


def _grouping(name: str, request: AdviceRequest, instances: int, split: Salting | None) -> Grouping:
    """The grouping as the configuration would make it."""
    configured = CountSettings.model_validate(
        {
            "grouping": name,
            "instances": None if name in _OWN_NUMBER else instances,
            "expression": request.expression if name == "custom" else None,
            "salts": split.salts if split else None,
            "hot_keys": split.hot_keys if split else (),
        }
    )
    return grouping_of(configured, request.key, instances)


def _distribution(request: AdviceRequest, rows: Sequence[Row]) -> KeyDistribution:
    (totals,) = (row for row in rows if row["keys"] is not None)
    of_bucket = {(row["instances"], row["bucket"]): row["clicks"] for row in rows if row["instances"] is not None}
    busiest = sorted(
        (KeyClicks(row["key"], row["clicks"], row["key_hash"]) for row in rows if row["key_hash"] is not None),
        key=lambda busy: (-busy.clicks, busy.key or ""),
    )
    by_bucket = {count: tuple(of_bucket.get((count, bucket), 0) for bucket in range(count)) for count in request.counts}
    return KeyDistribution(request.key, totals["clicks"] or 0, totals["keys"], tuple(busiest), by_bucket)


def _repartition(clicks: DataFrame, request: AdviceRequest, candidates: Sequence[_Candidate]) -> list[GroupingLoad]:
    partitionings = list(dict.fromkeys(candidate.partitioned_by for candidate in candidates))
    try:
        rows = loads(clicks, request.key, partitionings).collect()
    except PySparkException as error:
        if request.expression is None:
            raise
        raise ClickmillError(
            f"grouping custom({request.expression}) fails on these clicks: {str(error).splitlines()[0]}; "
            "expected a SQL expression that has a value, or null, for every click"
        ) from error
    by_partitioning: dict[int, list[Row]] = {}
    for row in rows:
        by_partitioning.setdefault(row["grouping"], []).append(row)
    return [
        _load(candidate, by_partitioning[partitionings.index(candidate.partitioned_by)]) for candidate in candidates
    ]


def _load(candidate: _Candidate, rows: Sequence[Row]) -> GroupingLoad:
    # Fifo has as many instances as it has files, each with clicks.
    instances = getattr(candidate.grouping, "instances", 1 + max(row["instance_id"] for row in rows))
    of_instance = {row["instance_id"]: row["rows"] for row in rows}
    return GroupingLoad(
        grouping=candidate.name,
        described=candidate.grouping.described(),
        rows=tuple(of_instance.get(instance, 0) for instance in range(instances)),
        keys_on_several=sum(row["split_keys"] for row in rows),
        out_of_order=sum(row["out_of_order"] for row in rows),
        salting=candidate.salting,
    )

"""How groupings partition clicks, compared with a plain Python reading of the rows."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

START = datetime(2026, 3, 1, tzinfo=UTC)
COUNTS = [1, 3, 8]


@pytest.fixture(scope="module")
def clicks(spark: SparkSession) -> Any:
    rng = random.Random(5)
    rows = [
        (
            rng.choice(["http://hot/"] * 6 + [None, *(f"http://x/{n}" for n in range(30))]),
            # Few moments, so that some clicks of a key come at the same time: those are not out of order.
            START + timedelta(seconds=number // 3 + rng.randrange(20)),
            f"v{number}",
        )
        for number in range(1500)
    ]
    return spark.createDataFrame(rows, "url STRING, clicked_at TIMESTAMP, visitor_id STRING")


def test_key_distribution_is_what_a_counter_says(clicks: Any) -> None:
    from pyspark.sql import functions as F

    from spark_jobs.grouping.partitioning import key_distribution

    rows = clicks.select("url", F.hash("url").alias("url_hash")).collect()
    hashes = {row["url"]: row["url_hash"] for row in rows}
    counted = Counter(row["url"] for row in rows)
    distribution = key_distribution(clicks, "url", COUNTS).collect()
    (totals,) = (row for row in distribution if row["keys"] is not None)
    assert (totals["clicks"], totals["keys"]) == (1500, len(counted))
    busiest = {row["key"]: (row["clicks"], row["key_hash"]) for row in distribution if row["key_hash"] is not None}
    assert busiest == {key: (counted[key], hashes[key]) for key in busiest}
    assert sorted((count for count, _ in busiest.values()), reverse=True) == sorted(counted.values(), reverse=True)[:16]
    expected: Counter[tuple[int, int]] = Counter()
    for key, count in counted.items():
        for instances in COUNTS:
            expected[instances, hashes[key] % instances] += count
    buckets = {(row["instances"], row["bucket"]): row["clicks"] for row in distribution if row["instances"] is not None}
    assert buckets == expected


def test_loads_are_what_the_rows_say(clicks: Any) -> None:
    from pyspark.sql import functions as F

    from spark_jobs.aggregate.groupings import (
        CustomGrouping,
        FieldsGrouping,
        FifoGrouping,
        GlobalGrouping,
        RangeGrouping,
        SaltedFieldsGrouping,
        ShuffleGrouping,
        with_instance,
    )
    from spark_jobs.grouping.partitioning import loads

    groupings = [
        FifoGrouping(),
        FieldsGrouping(8, ("url",)),
        RangeGrouping(3, ("url",)),
        CustomGrouping(3, "right(visitor_id, 1)"),
        SaltedFieldsGrouping(8, ("url",), 4, ("http://hot/",)),
        ShuffleGrouping(3),
        GlobalGrouping(),
    ]
    measured: dict[int, dict[int, tuple[int, int, int]]] = defaultdict(dict)
    for row in loads(clicks, "url", groupings).collect():
        measured[row["grouping"]][row["instance_id"]] = (row["rows"], row["split_keys"], row["out_of_order"])
    for number, grouping in enumerate(groupings):
        partitioned = with_instance(grouping.repartition(clicks)).select(
            "url",
            "instance_id",
            F.unix_micros("clicked_at").alias("time"),
            F.monotonically_increasing_id().alias("position"),
        )
        rows: Counter[int] = Counter()
        late: Counter[int] = Counter()
        instances_of = defaultdict(set)
        latest: dict[tuple[int, str | None], int] = {}
        for row in sorted(partitioned.collect(), key=lambda row: row["position"]):
            instance, place = row["instance_id"], (row["instance_id"], row["url"])
            rows[instance] += 1
            instances_of[row["url"]].add(instance)
            late[instance] += row["time"] < latest.get(place, 0)
            latest[place] = max(row["time"], latest.get(place, 0))
        by_instance = measured[number]
        split = sum(len(instances) > 1 for instances in instances_of.values())
        assert sum(load[1] for load in by_instance.values()) == split, grouping.described()
        assert sum(load[0] for load in by_instance.values()) == 1500, grouping.described()
        # Shuffle and salt go by a hash of all columns, and here there are fewer; range draws its bounds each time.
        if not isinstance(grouping, ShuffleGrouping | SaltedFieldsGrouping | RangeGrouping):
            assert {instance: load[0] for instance, load in by_instance.items()} == rows, grouping.described()
            assert {instance: load[2] for instance, load in by_instance.items()} == {i: late[i] for i in rows}
    late_rows = [sum(load[2] for load in measured[number].values()) for number in range(len(groupings))]
    assert min(late_rows[0], late_rows[1], late_rows[5]) > 100
    salted = [measured[4].get(instance, (0, 0, 0))[0] for instance in range(8)]
    assert sum(salted) == 1500
    assert max(salted) < max(load[0] for load in measured[1].values())

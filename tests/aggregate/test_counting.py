"""Duplicates, counts, buckets and outcomes, each against plain Python."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_clicks_are_counted_per_click_hour_and_key(spark: SparkSession) -> None:
    from spark_jobs.aggregate.count import complete_counts, count_per_instance
    from spark_jobs.aggregate.groupings import FieldsGrouping

    rng = random.Random(1)
    clicks = [
        (
            date(2026, 3, rng.choice([1, 2])),
            rng.randrange(3),
            rng.choice(["http://a/", "http://b/", "http://c/"]),
            rng.choice(["DE", "FR", "unknown"]),
            rng.choice([None, *(f"v{n}" for n in range(40))]),
            rng.random() < 0.2,
        )
        for _ in range(3000)
    ]
    frame = spark.createDataFrame(
        clicks,
        "click_date DATE, click_hour INT, url STRING, country_code STRING, visitor_id STRING, is_bot BOOLEAN",
    )
    for key, column in (("url", 2), ("country_code", 3)):
        expected = Counter((*click[:2], click[column]) for click in clicks)
        bots = Counter((*click[:2], click[column]) for click in clicks if click[5])
        visitors = defaultdict(set)
        for click in clicks:
            if click[4] is not None and not click[5]:
                visitors[(*click[:2], click[column])].add(click[4])
        grouping = FieldsGrouping(3, (key,))
        rows = complete_counts(count_per_instance(frame, key, grouping), key, grouping).collect()
        by_place = {(row["click_date"], row["click_hour"], row[key]): row for row in rows}
        assert len(rows) == len(expected)
        assert {place: row["click_count"] for place, row in by_place.items()} == expected
        assert {place: row["bot_click_count"] for place, row in by_place.items()} == {k: bots[k] for k in expected}
        # So few visitors are counted without error.
        assert {k: row["visitor_count"] for k, row in by_place.items()} == {k: len(visitors[k]) for k in expected}


@pytest.mark.parametrize("buckets", [1, 4, 7])
def test_bucket_is_the_partition_that_repartition_chooses(spark: SparkSession, buckets: int) -> None:
    from pyspark.sql import functions as F

    from spark_jobs.aggregate.groupings import FieldsGrouping

    keys = [(None,), ("",), *((f"http://shop.test/{n}",) for n in range(500))]
    grouping = FieldsGrouping(buckets, ("url",))
    partitioned = grouping.repartition(spark.createDataFrame(keys, "url STRING")).select(
        grouping.bucket().alias("bucket"), F.spark_partition_id().alias("partition")
    )
    rows = partitioned.collect()
    assert len(rows) == len(keys)
    assert [(row["bucket"], row["partition"]) for row in rows if row["bucket"] != row["partition"]] == []
    assert {row["bucket"] for row in rows} == set(range(buckets))


def test_outcomes_of_lines_add_up(spark: SparkSession) -> None:
    from spark_jobs.ingest.outcomes import count_outcomes

    rng = random.Random(2)
    midnight = datetime(2026, 3, 1, tzinfo=UTC)
    lines = []
    for line in range(2000):
        hour, file = rng.randrange(3), rng.randrange(2)
        # As in the arrivals: the file in the upper bits, the line in the lower ones.
        row_id = (hour * 2 + file) << 33 | line
        reason = rng.choice([None, None, "not_json", "bad_url"])
        clicked_at = None if reason == "not_json" else midnight + timedelta(seconds=rng.randrange(4 * 3600))
        late = None if reason else rng.random() < 0.3
        lines.append((row_id, date(2026, 3, 1), hour, "ab"[file], line, reason, clicked_at, f"e{line}", late))
    is_formed = {row[0] for row in lines if row[5] is None}
    duplicates = {row_id: 492_000 for row_id in is_formed if rng.random() < 0.1}
    parsed = spark.createDataFrame(
        lines,
        "row_id BIGINT, log_date DATE, log_hour INT, file STRING, line BIGINT, reason STRING, clicked_at TIMESTAMP, "
        "event_id STRING, is_out_of_order BOOLEAN",
    ).repartition(5)
    dropped = spark.createDataFrame(list(duplicates.items()), "row_id BIGINT, first_hour INT")

    def number(moment: datetime) -> int:
        return int(moment.timestamp()) // 3600

    expected = Counter(
        (number(midnight) + row[2], row[5], duplicates.get(row[0]), number(row[6]) if row[5] is None else None)
        for row in lines
    )
    outcomes = count_outcomes(parsed.join(dropped, "row_id", "left")).collect()
    counts = {
        (row["log_hour_number"], row["reason"], row["first_hour"], row["click_hour"]): row["lines"] for row in outcomes
    }
    assert counts == expected
    assert sum(row["lines"] for row in outcomes) == len(lines)

    late = Counter(number(midnight) + row[2] for row in lines if row[8] and row[0] not in duplicates)
    of_accepted: Counter[int] = Counter()
    for row in outcomes:
        if row["reason"] is None and row["first_hour"] is None:
            of_accepted[row["log_hour_number"]] += row["out_of_order"]
    assert of_accepted == late

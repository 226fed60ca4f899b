"""Duplicates, counts, buckets and outcomes, each against plain Python."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

#: Log hours of each lateness that are ingested again, one after the other: 15,000 decisions in 15 Spark jobs.
EXAMPLES, STEPS, HOURS = 1_000, 5, 20


class Arrival(NamedTuple):
    event_id: str
    hour: int
    file: str
    line: int


def _some_arrivals(rng: random.Random, example: int, hours: range) -> list[Arrival]:
    places = {
        (rng.choice(hours), rng.choice("ab"), rng.randrange(3)) for _ in range(rng.randrange(min(len(hours) + 1, 9)))
    }
    return [Arrival(f"{example}-{rng.randrange(2)}", *place) for place in places]


class Stored(NamedTuple):
    """What became of an arrival: the log hour of the accepted one, and whether that is this one."""

    first_hour: int
    is_accepted: bool


@pytest.mark.parametrize("lateness", [0, 2, 6])
def test_first_arrival_wins_within_the_window(spark: SparkSession, lateness: int) -> None:
    """Each step ingests log hours of every example; what it finds is what the next one has stored."""
    rng = random.Random(lateness)
    everything = [arrival for example in range(EXAMPLES) for arrival in _some_arrivals(rng, example, range(HOURS))]
    stored = _outcomes(everything, lateness)
    changed = 0
    for _ in range(STEPS):
        start = rng.randrange(HOURS)
        ingested = range(start, start + rng.choice([1, 1, 2, 4]))
        former = [arrival for arrival in stored if arrival.hour in ingested]
        # The same again, others, or none.
        again = {str(example): rng.randrange(3) for example in range(EXAMPLES)}
        arrived = [arrival for arrival in former if again[arrival.event_id.partition("-")[0]] == 0]
        for example in range(EXAMPLES):
            if again[str(example)] == 1:
                arrived += _some_arrivals(rng, example, ingested)
        others = {arrival: was for arrival, was in stored.items() if arrival.hour not in ingested}
        rng.shuffle(arrived)
        found = _decided(spark, arrived, others, ingested, lateness)
        changed += sum(found[arrival] != was for arrival, was in others.items())
        stored = found
        assert stored == _outcomes(list(stored), lateness)
    assert changed > EXAMPLES / 20 if lateness else changed == 0


def _decided(
    spark: SparkSession, arrived: list[Arrival], others: dict[Arrival, Stored], ingested: range, lateness: int
) -> dict[Arrival, Stored]:
    """What the lake has when these arrivals have been ingested beside the others."""
    from spark_jobs.ingest.duplicates import decide_duplicates

    columns = "event_id STRING, hour_number INT, file STRING, line BIGINT"
    arrivals = [(*arrival, row_id) for row_id, arrival in enumerate(arrived)]
    of_lake = [(*arrival, was.first_hour) for arrival, was in others.items()]
    arrivals_frame = spark.createDataFrame(arrivals, f"{columns}, row_id BIGINT").repartition(3)
    stored_frame = spark.createDataFrame(of_lake, f"{columns}, first_hour INT").repartition(2)
    candidates = arrivals_frame.unionByName(stored_frame, allowMissingColumns=True)
    rows = decide_duplicates(candidates, ingested, lateness).collect()
    duplicates = {arrived[row["row_id"]]: row["first_hour"] for row in rows if row["row_id"] is not None}
    changes = {(row["event_id"], row["hour_number"]): row for row in rows if row["row_id"] is None}
    assert len(rows) == len(duplicates) + len(changes)
    found = {arrival: Stored(duplicates.get(arrival, arrival.hour), arrival not in duplicates) for arrival in arrived}
    for arrival, was in others.items():
        change = changes.get(arrival[:2])
        if change is None:
            found[arrival] = was
        else:
            assert change["first_hour"] != was.first_hour
            is_first = (change["file"], change["line"]) == arrival[2:]
            found[arrival] = Stored(change["first_hour"], is_first and change["first_hour"] == arrival.hour)
    assert changes.keys() <= {arrival[:2] for arrival in others}
    return found


def _outcomes(arrivals: list[Arrival], lateness: int) -> dict[Arrival, Stored]:
    """One after the other, in the order in which they came."""
    last_accepted: dict[str, int] = {}
    outcomes = {}
    for arrival in sorted(arrivals, key=lambda arrival: arrival[1:]):
        last = last_accepted.get(arrival.event_id)
        is_accepted = last is None or arrival.hour - last > lateness
        if is_accepted:
            last_accepted[arrival.event_id] = arrival.hour
        outcomes[arrival] = Stored(last_accepted[arrival.event_id], is_accepted)
    return outcomes


def test_clicks_are_counted_per_click_hour_and_key(spark: SparkSession) -> None:
    from spark_jobs.aggregate.count import count_clicks_by
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
        rows = count_clicks_by(frame, key, grouping).collect()
        found = {(row["click_date"], row["click_hour"], row[key]): row for row in rows}
        assert len(rows) == len(expected)
        assert {place: row["click_count"] for place, row in found.items()} == expected
        assert {place: row["bot_click_count"] for place, row in found.items()} == {k: bots[k] for k in expected}
        # So few visitors are counted without error.
        assert {k: row["visitor_count"] for k, row in found.items()} == {k: len(visitors[k]) for k in expected}


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
    found = {
        (row["log_hour_number"], row["reason"], row["first_hour"], row["click_hour"]): row["lines"] for row in outcomes
    }
    assert found == expected
    assert sum(row["lines"] for row in outcomes) == len(lines)

    late = Counter(number(midnight) + row[2] for row in lines if row[8] and row[0] not in duplicates)
    of_accepted: Counter[int] = Counter()
    for row in outcomes:
        if row["reason"] is None and row["first_hour"] is None:
            of_accepted[row["log_hour_number"]] += row["out_of_order"]
    assert of_accepted == late

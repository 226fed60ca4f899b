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

EXAMPLES = 400


class Arrival(NamedTuple):
    event_id: str
    hour: int
    file: str
    line: int


def _first_hours(arrivals: list[Arrival], lateness: int) -> dict[Arrival, int]:
    """Of each arrival the hour of the accepted one: one after the other, in the order in which they came."""
    last_accepted: dict[str, int] = {}
    accepted: dict[Arrival, int] = {}
    for arrival in sorted(arrivals, key=lambda arrival: arrival[1:]):
        last = last_accepted.get(arrival.event_id)
        if last is None or arrival.hour - last > lateness:
            last_accepted[arrival.event_id] = arrival.hour
        accepted[arrival] = last_accepted[arrival.event_id]
    return accepted


def _some_arrivals(rng: random.Random, event_id: str, hours: range) -> list[Arrival]:
    places = {(rng.choice(hours), rng.choice("ab"), rng.randrange(3)) for _ in range(rng.randrange(9))}
    return [Arrival(f"{event_id}-{rng.randrange(2)}", *place) for place in places]


@pytest.mark.parametrize("lateness", [0, 2, 6])
def test_first_arrival_wins_within_the_window(spark: SparkSession, lateness: int) -> None:
    from spark_jobs.ingest.duplicates import decide_duplicates

    rng, of_run = random.Random(lateness), range(8, 12)
    stored: list[Arrival] = []
    former: list[Arrival] = []
    arrived: list[Arrival] = []
    # Each example has ids of its own, so that one Spark job judges them all.
    for example in range(EXAMPLES):
        others = _some_arrivals(rng, str(example), range(30))
        stored += [arrival for arrival in others if arrival.hour not in of_run]
        former += [arrival for arrival in others if arrival.hour in of_run]
        again = _some_arrivals(rng, str(example), of_run)
        arrived += rng.choice([again, [arrival for arrival in others if arrival.hour in of_run], []])
    before, after = _first_hours(stored + former, lateness), _first_hours(stored + arrived, lateness)

    rng.shuffle(arrived)
    frame = spark.createDataFrame(
        [(*arrival, row_id) for row_id, arrival in enumerate(arrived)],
        "event_id STRING, hour_number INT, file STRING, line BIGINT, row_id BIGINT",
    )
    of_lake = spark.createDataFrame(
        [(*arrival, before[arrival]) for arrival in stored],
        "event_id STRING, hour_number INT, file STRING, line BIGINT, first_hour INT",
    )
    accepted = [(arrival.event_id,) for arrival in former if _is_accepted(arrival, before)]
    formerly = spark.createDataFrame(accepted, "event_id STRING")
    rows = decide_duplicates(frame.repartition(3), of_lake.repartition(2), formerly, of_run[0], lateness).collect()

    duplicates = {arrival: after[arrival] for arrival in arrived if not _is_accepted(arrival, after)}
    assert len(duplicates) > 50
    found = {arrived[row["row_id"]]: row["first_hour"] for row in rows if row["row_id"] is not None}
    assert found == duplicates
    # Of each id and hour of later ones that are others now, the first arrival.
    changed = {arrival for arrival in stored if arrival.hour > of_run[0] and after[arrival] != before[arrival]}
    firsts = {min(group): after[min(group)] for group in _by_id_and_hour(changed).values()}
    assert bool(firsts) == (lateness > 0)
    assert {
        Arrival(row["event_id"], row["hour_number"], row["file"], row["line"]): row["first_hour"]
        for row in rows
        if row["row_id"] is None
    } == firsts
    assert len(rows) == len(duplicates) + len(firsts)


def _is_accepted(arrival: Arrival, first_hours: dict[Arrival, int]) -> bool:
    same = [other for other in first_hours if other[:2] == arrival[:2]]
    return first_hours[arrival] == arrival.hour and arrival == min(same)


def _by_id_and_hour(arrivals: set[Arrival]) -> dict[tuple[str, int], list[Arrival]]:
    groups = defaultdict(list)
    for arrival in arrivals:
        groups[arrival[:2]].append(arrival)
    return groups


def test_clicks_are_counted_per_click_hour_and_key(spark: SparkSession) -> None:
    from spark_jobs.transforms.count_clicks import count_clicks_by
    from spark_jobs.transforms.groupings import FieldsGrouping

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

    from spark_jobs.transforms.groupings import FieldsGrouping

    keys = [(None,), ("",), *((f"http://shop.test/{n}",) for n in range(500))]
    grouping = FieldsGrouping(buckets, ("url",))
    dealt = grouping.deal(spark.createDataFrame(keys, "url STRING")).select(
        grouping.bucket().alias("bucket"), F.spark_partition_id().alias("partition")
    )
    rows = dealt.collect()
    assert len(rows) == len(keys)
    assert [(row["bucket"], row["partition"]) for row in rows if row["bucket"] != row["partition"]] == []
    assert {row["bucket"] for row in rows} == set(range(buckets))


def test_outcomes_of_lines_add_up(spark: SparkSession) -> None:
    from spark_jobs.transforms.account_for_lines import count_outcomes

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

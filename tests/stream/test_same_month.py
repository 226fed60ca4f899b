"""Hours by one range, hour by hour, in chunks that are killed, and streamed: the same is published, as the sample says.

5 hours across midnight; CLICKMILL_FAULT_ROUNDS times as many where it is set: 144 make a month, in half an hour.
CLICKMILL_FAULT_SEED draws the same kills.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from include.backfills import read_backfills
from include.hours import Hour
from include.tables import AGGREGATES, PUBLISHED
from samples.sample_logs import make_sample
from samples.sample_spec import SampleSpec
from spark_jobs.backfill.plan import Request
from tests.stream.landed_records import landed_records
from tests.stream.streamed_lake import StreamedLake
from tests.support.killed_runs import Killed, killed_after
from tests.support.published_clicks import published_clicks, true_clicks
from tests.support.temporary_lake import TemporaryLake, assert_same_tables, make_settings

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROUNDS = int(os.environ.get("CLICKMILL_FAULT_ROUNDS") or 1)
SEED = int(os.environ.get("CLICKMILL_FAULT_SEED") or random.randrange(2**32))
SPEC = SampleSpec(start=Hour.parse("2026-03-01T22"), hours=5 * ROUNDS, clicks_per_hour=400, seed=5)
HOURS = list(SPEC.log_hours)
#: At most so many kills for each five hours.
KILLS = 3
#: So many are run one by one, first of all and last, 6 s each; those between as one range, as after an outage.
ONE_BY_ONE = 50

pytestmark = [pytest.mark.slow, pytest.mark.faults]


def in_chunks(lake: TemporaryLake, hours: int) -> None:
    """The backfill of all hours, as from the command line."""
    lake.backfill(Request("web", SPEC.log_hours, hours, is_staged=False))


def in_killed_chunks(lake: TemporaryLake) -> int:
    """The same, killed after some commits and begun again, and to its end after KILLS; how many that were."""
    drawn = random.Random(SEED)
    kills = 0
    while True:
        commits = drawn.choice([2, 5, 9, 13, 21]) if kills < KILLS * ROUNDS else None
        with suppress(Killed), killed_after(commits, first=drawn.randrange(3)):
            in_chunks(lake, max(2, len(HOURS) // 20))
            return kills
        kills += 1
        (backfill,) = read_backfills(lake.settings.lake).values()
        if not backfill.is_open:
            return kills


def hour_by_hour(lake: TemporaryLake) -> None:
    """As the schedule does, with an outage."""
    between = HOURS[ONE_BY_ONE:-ONE_BY_ONE]
    for hour in HOURS[:ONE_BY_ONE]:
        lake.run_all(str(hour))
    if between:
        lake.run_all(str(between[0]), str(between[-1].plus(1)))
    for hour in HOURS[max(ONE_BY_ONE, len(HOURS) - ONE_BY_ONE) :]:
        lake.run_all(str(hour))


def published(lake: TemporaryLake) -> dict[str, list[dict[str, Any]]]:
    """Row by row; sketches of the same visitors may differ in their bytes by the order in which they were united."""
    return {
        table.name: lake.rows(table, without=("counted_at", "visitor_sketch"))
        for pair in (*AGGREGATES.items(), *PUBLISHED.items())
        for table in pair
    }


def test_a_month_by_range_by_hours_by_killed_chunks_and_streamed(
    tmp_path: Path, make_lake: Callable[[str], TemporaryLake], spark: SparkSession, streamed: StreamedLake
) -> None:
    print(f"CLICKMILL_FAULT_SEED={SEED} CLICKMILL_FAULT_ROUNDS={ROUNDS}")
    by_range = make_lake("range")
    truth = make_sample(SPEC, by_range.settings.landing)
    lakes = {name: TemporaryLake(spark, make_settings(tmp_path / name)) for name in ("hours", "killed chunks")}
    for lake in lakes.values():
        shutil.copytree(by_range.settings.landing, lake.settings.landing)
    in_chunks(by_range, 1000)
    hour_by_hour(lakes["hours"])
    assert in_killed_chunks(lakes["killed chunks"]) > 1
    streamed.broker.produce(streamed.topic, landed_records(by_range.settings.landing, "web", HOURS, partitions=3))
    streamed.read_all()
    in_chunks(streamed, max(3, len(HOURS) // 20))

    expected = published(by_range)
    for lake in (*lakes.values(), streamed):
        assert_same_tables(published(lake), expected)
        assert lake.exports() == by_range.exports() != []
    for hourly, daily in PUBLISHED.items():
        hours = true_clicks(truth, hourly)
        assert published_clicks(by_range, hourly) == hours
        days: Counter[tuple[str, Any]] = Counter()
        for (hour, key), clicks in hours.items():
            days[hour[:10], key] += clicks
        assert {
            (str(row["click_date"]), row[hourly.key[-1]]): row["click_count"] for row in by_range.rows(daily)
        } == days

"""Counting under the configured groupings: what is stored, what is measured of it, and what it warns of."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from include.counting import count_table
from include.errors import UsageError
from include.hours import Hour
from include.tables import (
    AGGREGATES,
    CLICKS_BY_COUNTRY_HOURLY,
    CLICKS_BY_URL_HOURLY,
    GROUPING_METRICS,
    OUT_OF_ORDER_KEYS,
    QUALITY_RESULTS,
)
from spark_jobs.engine.session import session_settings
from tests.support.temporary_lake import TemporaryLake, click

pytestmark = pytest.mark.spark

HOUR = "2026-03-01T05"


def _lines() -> list[bytes]:
    """Clicks of one hour, out of order, half of them on one URL, a third without a referrer."""
    rng = random.Random(600)
    return [
        click(
            f"e{n}",
            f"2026-03-01T05:{rng.randrange(60):02d}:00Z",
            "http://shop.test/hot" if rng.random() < 0.5 else f"http://shop.test/{rng.randrange(30)}",
            referrer=rng.choice([None, "http://a.test/", "http://b.test/"]),
        )
        for n in range(600)
    ]


LANDED: list[dict[str, Any]] = [json.loads(line) for line in _lines()]


@pytest.fixture(scope="module")
def landed_and_ingested(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    lake = make_lake("ingested")
    lake.land(HOUR, {"part-0.json.gz": b"".join(_lines())})
    lake.run("ingest", HOUR)
    return lake


@pytest.fixture
def ingested(landed_and_ingested: TemporaryLake, tmp_path: Path) -> TemporaryLake:
    """The hour of LANDED has been ingested, and nothing counted."""
    return landed_and_ingested.copy(tmp_path / "copy")


def _run(lake: TemporaryLake, *jobs: str) -> None:
    for job in jobs:
        lake.run(job, HOUR)


def _configure(lake: TemporaryLake, text: str) -> None:
    with lake.settings.pipeline_file.open("a", encoding="utf-8") as file:
        file.write(text)
    lake.settings.__dict__.pop("pipeline", None)


def test_an_hours_counts_are_one_file_of_each_table_whatever_the_grouping(ingested: TemporaryLake) -> None:
    """What a range costs is files: with a file for each bucket, small hours took half as long again."""
    lake = ingested
    _configure(
        lake,
        '[counts.url]\ngrouping = "shuffle"\ninstances = 3\n[counts.country_code]\ngrouping = "fields"\n'
        "[counts.referrer]\n",
    )
    _run(lake, "aggregate", "validate", "publish")
    for table in (count_table("referrer"), *AGGREGATES, *AGGREGATES.values()):
        assert len(DeltaTable(lake.settings.lake / table.name).file_uris()) == 1, table.name


def test_hours_are_one_file_each_however_large_they_are_together(lake: TemporaryLake) -> None:
    """And an hour that is larger than Spark gives to one task is written by several."""
    _configure(lake, '[counts.url]\ngrouping = "fields"\n')
    hours = [str(Hour.parse(HOUR).plus(number)) for number in range(8)]
    for hour in hours:
        of_hour = [
            click(f"{hour}-{n}", f"{hour}:10:00Z", f"http://shop.test/{n}", visitor_id=f"v{n}") for n in range(300)
        ]
        lake.land(hour, {"part-0.json.gz": b"".join(of_hour)})
    end = str(Hour.parse(hours[-1]).plus(1))
    lake.run("ingest", HOUR, end)
    files = {}
    for size in ("16KB", "4KB"):
        with session_settings(lake.spark, {"spark.sql.adaptive.advisoryPartitionSizeInBytes": size}):
            lake.run("aggregate", HOUR, end)
        files[size] = len(DeltaTable(lake.settings.lake / CLICKS_BY_URL_HOURLY.name).file_uris())
    assert files["16KB"] == len(hours)
    assert files["4KB"] > len(hours)


def test_an_hour_without_clicks_has_instances_without_load(lake: TemporaryLake) -> None:
    """Spark leaves out a query that has nothing to count, and what was to be observed of it."""
    lake.land(HOUR, {"part-0.json.gz": b"broken\n"})
    lake.run("ingest", HOUR)
    lake.run("aggregate", HOUR)
    metrics = lake.rows(GROUPING_METRICS)
    assert {row["instance_id"] for row in metrics} == {0, 1, 2, 3}
    assert {(row["rows"], row["keys"], row["busiest_key"], row["seconds"]) for row in metrics} == {(0, 0, None, None)}


def test_split_counts_are_merged_and_a_further_key_has_its_table(ingested: TemporaryLake) -> None:
    lake = ingested
    _configure(
        lake,
        '[counts.url]\ngrouping = "salted_fields"\nsalts = 3\n'
        '[counts.country_code]\ngrouping = "shuffle"\ninstances = 2\n[counts.referrer]\n',
    )
    _run(lake, "aggregate", "validate")
    by_url = {row["url"]: row["click_count"] for row in lake.rows(CLICKS_BY_URL_HOURLY)}
    assert by_url == Counter(row["url"] for row in LANDED)
    assert [row["click_count"] for row in lake.rows(CLICKS_BY_COUNTRY_HOURLY)] == [len(LANDED)]
    by_referrer = {row["referrer"]: row["click_count"] for row in lake.rows(count_table("referrer"))}
    assert by_referrer == Counter(row.get("referrer") for row in LANDED)
    checks = {
        row["expectation"]: row["outcome"] == "pass"
        for row in lake.rows(QUALITY_RESULTS)
        if row["severity"] == "critical"
    }
    assert checks["no referrer has two rows in a click hour, so none has two buckets"]
    assert all(checks.values())


def test_metrics_say_what_each_instance_counted(ingested: TemporaryLake) -> None:
    lake = ingested
    _configure(lake, '[counts.url]\ngrouping = "fields"\n')
    lake.run("aggregate", HOUR)
    metrics = [row for row in lake.rows(GROUPING_METRICS) if row["operator"] == "count_by_url"]
    stored = lake.rows(CLICKS_BY_URL_HOURLY)
    assert [row["instance_id"] for row in sorted(metrics, key=lambda row: row["instance_id"])] == [0, 1, 2, 3]
    for row in metrics:
        # Under fields grouping over as many instances as buckets, the bucket is the instance.
        here = [count for count in stored if count["bucket"] == row["instance_id"]]
        assert row["rows"] == sum(count["click_count"] for count in here)
        assert row["keys"] == len(here)
        if here:
            busiest = max(here, key=lambda count: count["click_count"])
            assert row["busiest_key"] == busiest["url"]
            assert row["busiest_key_share"] == pytest.approx(busiest["click_count"] / row["rows"])
        assert (row["seconds"] is None) == (row["rows_per_second"] is None)
    (hot,) = (row for row in metrics if row["busiest_key"] == "http://shop.test/hot")
    assert 0 < hot["seconds"] < 60
    assert sum(row["rows"] for row in metrics) == len(LANDED)


@pytest.mark.path
def test_counts_that_are_combined_move_in_place_of_clicks(ingested: TemporaryLake) -> None:
    """A row for each key and click hour at most, however busy the key is; its load is not judged."""
    lake = ingested
    _configure(lake, "[thresholds]\nskew = { warning = 1.1 }\n")
    _run(lake, "aggregate", "validate")
    metrics = [row for row in lake.rows(GROUPING_METRICS) if row["operator"] == "count_by_url"]
    stored = lake.rows(CLICKS_BY_URL_HOURLY)
    assert Counter(row["bucket"] for row in stored) == Counter({row["instance_id"]: row["rows"] for row in metrics})
    assert sum(row["rows"] for row in metrics) == len(stored) < len(LANDED)
    assert {(row["grouping"], row["busiest_key"]) for row in metrics} == {("combine(url) over 4", None)}
    assert not [row for row in lake.rows(QUALITY_RESULTS) if row["suite"] == "load"]


def test_a_skew_above_the_limit_is_a_warning_with_advice(ingested: TemporaryLake) -> None:
    lake = ingested
    _configure(lake, '[thresholds]\nskew = { warning = 1.1 }\n[counts.url]\ngrouping = "fields"\n')
    _run(lake, "aggregate", "validate")
    results = [row for row in lake.rows(QUALITY_RESULTS) if row["suite"] == "load"]
    by_url = next(row for row in results if row["partition"].startswith("count_by_url 2026-03-01T05"))
    assert (by_url["severity"], by_url["outcome"]) == ("warning", "fail")
    assert "http://shop.test/hot" in by_url["observed"]
    assert "salt" in by_url["observed"]


def test_an_expression_that_clicks_do_not_have_is_refused_before_any_work(ingested: TemporaryLake) -> None:
    lake = ingested
    _configure(lake, '[counts.url]\ngrouping = "custom"\nexpression = "nowhere + 1"\n')
    with pytest.raises(UsageError, match="nowhere"):
        lake.run("aggregate", HOUR)
    assert lake.rows(CLICKS_BY_URL_HOURLY) == []


def test_keys_out_of_order_are_logged(ingested: TemporaryLake) -> None:
    from include.job_arguments import JobArguments
    from spark_jobs.ingest.out_of_order_keys import log_out_of_order_keys

    lake = ingested
    latest: dict[str, str] = {}
    expected: Counter[str] = Counter()
    for row in LANDED:
        expected[row["url"]] += row["ts"] < latest.get(row["url"], "")
        latest[row["url"]] = max(row["ts"], latest.get(row["url"], ""))
    arguments = JobArguments.of("web", None, None, HOUR)
    for _ in range(2):
        log_out_of_order_keys(lake.spark, lake.settings, arguments, key="url")
        log_out_of_order_keys(lake.spark, lake.settings, arguments, key="source")
        counts = {row["key"]: row["out_of_order"] for row in lake.rows(OUT_OF_ORDER_KEYS) if row["key_name"] == "url"}
        assert counts == +expected
    # All clicks as one key: what the accounting counts line by line while ingesting.
    (whole,) = (row for row in lake.rows(OUT_OF_ORDER_KEYS) if row["key_name"] == "source")
    assert whole["out_of_order"] == lake.accounting()[HOUR]["out_of_order"] > 300

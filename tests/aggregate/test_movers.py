"""Movers against plain Python, and what their join costs, from Spark's plan."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def _counts(spark: SparkSession, rows: list[tuple[str, int]]) -> DataFrame:
    return spark.createDataFrame(rows, "url STRING, click_count BIGINT")


def _movers(
    spark: SparkSession, day: list[tuple[str, int]], before: list[tuple[str, int]], n: int, m: int
) -> DataFrame:
    from spark_jobs.aggregate.groupings import FieldsGrouping
    from spark_jobs.aggregate.movers import clicks_per_url, movers

    return movers(
        clicks_per_url(_counts(spark, day), FieldsGrouping(n, ("url",))),
        clicks_per_url(_counts(spark, before), FieldsGrouping(m, ("url",))),
    )


def _exchanges(frame: DataFrame, capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    frame.explain()
    lines = capsys.readouterr().out.splitlines()
    return [line.strip(" :+-") for line in lines if "Exchange" in line]


def test_movers_are_the_differences_of_both_days(spark: SparkSession) -> None:
    from spark_jobs.aggregate.movers import biggest

    rng = random.Random(7)
    # Several hours a URL; some URLs on one of the days only, some without a change.
    day = [(f"u{rng.randrange(60)}", rng.randrange(1, 9)) for _ in range(150)] + [("same", 5), ("only now", 1)]
    before = [(f"u{rng.randrange(30, 90)}", rng.randrange(1, 9)) for _ in range(150)] + [("same", 5), ("only then", 2)]
    clicks, clicks_before = Counter[str](), Counter[str]()
    for counter, rows in ((clicks, day), (clicks_before, before)):
        for url, count in rows:
            counter[url] += count
    expected = {
        url: (clicks[url], clicks_before[url], clicks[url] - clicks_before[url]) for url in {*clicks, *clicks_before}
    }
    moved = _movers(spark, day, before, 4, 4)
    assert {row["url"]: tuple(row)[1:] for row in moved.collect()} == expected
    changed = sorted((url for url in expected if expected[url][2]), key=lambda url: (-abs(expected[url][2]), url))
    assert [row["url"] for row in biggest(moved, 10).collect()] == changed[:10]
    assert len(changed) < len(expected)


def test_sides_partitioned_alike_are_joined_where_they_are(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [(f"u{n}", n) for n in range(20)]
    alike = _exchanges(_movers(spark, rows, rows, 4, 4), capsys)
    # One for each side, by which it is partitioned; none for the join.
    assert [("REPARTITION_BY_NUM" in line, ", 4)" in line) for line in alike] == [(True, True)] * 2
    unlike = _exchanges(_movers(spark, rows, rows, 4, 8), capsys)
    assert len(unlike) == 3
    assert sum("ENSURE_REQUIREMENTS" in line for line in unlike) == 1

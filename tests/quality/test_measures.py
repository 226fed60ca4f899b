"""What Spark measures is in the columns that ``expectations/facts.py`` declares, and comes by one action a query."""

from __future__ import annotations

from datetime import date

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from expectations.checks import RowRule
from expectations.facts import as_facts
from spark_jobs.engine.fact_frames import collected
from spark_jobs.quality import measures

pytestmark = pytest.mark.spark

DAY = date(2026, 3, 1)
RULES = [
    RowRule("matching_share(url, ^A)", counted="url RLIKE '^A'"),
    RowRule("matching_share(url, ^a)", counted="1 = 0"),
]


def test_facts_of_several_subjects_and_frames_are_apart(spark: SparkSession) -> None:
    rows = (
        "source STRING, log_date DATE, log_hour INT, click_date DATE, click_hour INT, url STRING, clicked_at TIMESTAMP"
    )
    clicks = spark.createDataFrame([("web", DAY, 5, DAY, 4, "A", None), ("web", DAY, 5, None, None, "b", None)], rows)
    counts = spark.createDataFrame(
        [(DAY, 4, "A", 7, 1, 2, None)],
        "click_date DATE, click_hour INT, url STRING, click_count BIGINT, bot_click_count BIGINT, "
        "visitor_count BIGINT, counted_at TIMESTAMP",
    )
    of_keys = [
        ("counts", measures.count_facts(counts, "url", RULES[:1]).select(F.lit(key).alias("key"), "*"))
        for key in ("url", "country")
    ]
    measured = collected(
        spark,
        {
            "clicks": [
                ("clicks", measures.click_facts(clicks, RULES)),
                ("duplicates", measures.duplicate_facts(clicks.where("log_hour = 6"))),
            ],
            "counts": of_keys,
        },
    )
    assert measured.keys() == {"clicks", "duplicates", "counts"}
    facts = {subject: as_facts(measured)[subject].to_pylist() for subject in measured}
    times = {"first_clicked_micros": None, "last_clicked_micros": None}
    of_hour = {"source": "web", "log_date": DAY, "log_hour": 5, "clicks": 1, **times}
    assert sorted(facts["clicks"], key=lambda fact: str(fact["click_date"])) == [
        {**of_hour, "click_date": DAY, "click_hour": 4, "counted": [(RULES[0].name, 1), (RULES[1].name, 0)]},
        {**of_hour, "click_date": None, "click_hour": None, "counted": [(RULES[0].name, 0), (RULES[1].name, 0)]},
    ]
    assert facts["duplicates"] == []
    assert [(fact["key"], fact["clicks"], fact["keys"], fact["counted"]) for fact in facts["counts"]] == [
        (key, 7, 1, [(RULES[0].name, 1)]) for key in ("url", "country")
    ]


@pytest.mark.parametrize(("pages", "every"), [(5000, 1), (5000, 4), (7, 1)])
def test_urls_are_counted_and_drawn_by_a_part_of_them(spark: SparkSession, pages: int, every: int) -> None:
    clicks = spark.range(20_000).selectExpr(
        "'web' AS source", f"DATE '{DAY}' AS log_date", "5 AS log_hour", f"DATE '{DAY}' AS click_date",
        "cast(id % 2 AS INT) AS click_hour", f"concat('http://a.test/', id % {pages}, repeat('x', 3000)) AS url",
        "timestamp_micros(id) AS clicked_at",
    )  # fmt: skip
    frames = [("urls", measures.url_facts(clicks, every)), ("some_urls", measures.some_urls(clicks, every))]
    measured = collected(spark, {"clicks": frames})
    # Of an even number of pages each click hour has half, of an odd number each has all.
    (fact,) = measured["urls"].to_pylist()
    assert fact["distinct_urls"] == pytest.approx(5000 if pages == 5000 else 14, rel=0.15)
    (some,) = measured["some_urls"]["some_urls"].to_pylist()
    assert len(some) == 1000
    assert {len(url) for url in some} == {2048}
    assert pages == 7 or len(set(some)) > 0.7 * len(some), "clicks are drawn, not pages"
    assert pages == 5000 or len(set(some)) == 7

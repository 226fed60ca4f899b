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

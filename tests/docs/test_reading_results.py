"""The queries of the guide on reading the results run on real tables, and say what the clicks say."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from include.hours import Hour
from include.settings import REPOSITORY
from include.tables import CLICKS, VISITOR_COUNT_STANDARD_ERROR
from samples.sample_logs import SampleSpec, make_sample
from tests.docs.test_guides import blocks
from tests.support.temporary_lake import TemporaryLake

pytestmark = pytest.mark.spark

SPEC = SampleSpec(start=Hour.parse("2026-03-01T10"), hours=2, clicks_per_hour=1500, seed=5)


def test_every_query_gives_what_the_clicks_are(
    lake: TemporaryLake, spark_remote: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_sample(SPEC, lake.settings.landing)
    lake.run_all(str(SPEC.log_hours.start), str(SPEC.log_hours.end))
    clicks = lake.rows(CLICKS)
    monkeypatch.setenv("CLICKMILL_HOME", str(lake.settings.home))
    monkeypatch.setenv("SPARK_REMOTE", spark_remote)
    names: dict[str, Any] = {}
    code = blocks(REPOSITORY / "docs" / "guides" / "reading-results.md")
    assert len(code) == 3
    for block in code:
        exec(compile(block, "reading-results.md", "exec"), names)
    of_march = [row for row in clicks if row["click_date"].month == 3]
    by_url = Counter(row["url"] for row in of_march)
    assert names["busiest"].fetchall() == [
        (url, count, False) for url, count in sorted(by_url.items(), key=lambda item: (-item[1], item[0]))[:10]
    ]
    by_hour = Counter((row["click_date"], row["click_hour"], row["country_code"]) for row in clicks)
    assert {
        (*hour, country): count
        for country, of_country in names["by_hour"].items()
        for hour, count in of_country.dropna().items()
    } == by_hour
    months = {row["month"].month: row for row in names["months"].collect()}
    visitors = {row["visitor_id"] for row in of_march if row["visitor_id"] and not row["is_bot"]}
    assert months[3]["clicks"] == len(of_march)
    assert months[3]["visitors"] == pytest.approx(len(visitors), rel=4 * VISITOR_COUNT_STANDARD_ERROR)
    assert months[3]["too_many"] >= months[3]["visitors"]

"""Advice from a small lake with a planted hot URL, and what is said of bad input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from include.errors import ClickmillError, UsageError
from include.job_arguments import JobArguments
from tests.support.temporary_lake import TemporaryLake, click

pytestmark = pytest.mark.spark

HOUR = "2026-03-01T05"
ARGUMENTS = JobArguments.of("web", None, None, HOUR)
HOT = "http://shop.test/hot"


@pytest.fixture(scope="module")
def planted(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    """Of 1,000 clicks 31 % are on one URL; the others are spread over 230, three each."""
    lake = make_lake("planted")
    urls = [HOT] * 310 + [f"http://shop.test/{number % 230}" for number in range(690)]
    start = datetime(2026, 3, 1, 5, tzinfo=UTC)
    lines = [
        click(f"e{number}", (start + timedelta(seconds=number)).isoformat(), url) for number, url in enumerate(urls)
    ]
    lake.land(HOUR, {"a.json": b"".join(lines)})
    lake.land("2026-03-01T06", {"a.json": b"\n"})
    lake.run("ingest", HOUR, "2026-03-01T07")
    return lake


@pytest.mark.path
def test_hot_url_is_named_and_salted(planted: TemporaryLake) -> None:
    from spark_jobs.grouping.advice_values import as_json
    from spark_jobs.grouping.job import AdviceRequest, give_advice

    request = AdviceRequest("url", (1, 8), ("fields", "salted_fields", "fifo"))
    advice = as_json(give_advice(planted.spark, planted.settings, ARGUMENTS, request, is_measured=True))
    assert (advice["clicks"], advice["keys"]) == (1000, 231)
    assert advice["hot_keys"] == [{"key": HOT, "clicks": 310, "share": 0.31, "fields_limit": 3}]
    loads = {(load["grouping"], load["instances"]): load for load in advice["groupings"]}
    assert len(loads) == 2 * 2 + 1, "fifo has one instance: there is one file"
    assert all(sum(load["rows"]) == 1000 for load in loads.values())
    assert loads["fields", 8]["speed_up"] <= 1000 / 310
    assert loads["fields", 8]["keys_on_several"] == 0
    assert loads["salted_fields", 8]["keys_on_several"] == 1
    assert loads["fifo", 1]["out_of_order"] == 0, "they landed in the order of time"
    best = advice["recommendation"]
    assert (best["grouping"], best["instances"], best["salted_keys"][0]) == ("salted_fields", 8, HOT)
    assert 3 <= best["salts"] <= 8
    assert (
        "the busiest URL has 31% of the clicks: above 3 instances fields grouping cannot help; salt" in best["reason"]
    )
    assert [len(measured["rows_per_second"]) for measured in advice["measured"]] == [
        measured["instances"] for measured in advice["measured"]
    ]
    assert len(advice["measured"]) == len(loads)
    assert all(measured["clicks_per_second"] > 0 for measured in advice["measured"])


@pytest.mark.parametrize(
    ("arguments", "values", "error", "message"),
    [
        (JobArguments.of("web", None, None, "2026-03-01T06"), {}, ClickmillError, "no clicks of web in the log hours"),
        (JobArguments.of("web", None, None, "2026-03-01T09"), {}, ClickmillError, "has not been ingested"),
        (ARGUMENTS, {"expression": "no_such_column"}, UsageError, "expected a SQL expression over source"),
        (ARGUMENTS, {"expression": "raise_error('x')"}, ClickmillError, r"custom\(raise_error\('x'\)\) fails"),
    ],
)
def test_what_cannot_be_partitioned_is_one_line(
    planted: TemporaryLake, arguments: JobArguments, values: dict[str, str], error: type[Exception], message: str
) -> None:
    from spark_jobs.grouping.job import AdviceRequest, give_advice

    request = replace(AdviceRequest("url", (2,)), **values)
    with pytest.raises(error, match=message) as raised:
        give_advice(planted.spark, planted.settings, arguments, request, is_measured=False)
    assert type(raised.value) is error
    assert "\n" not in str(raised.value)


def test_of_many_clicks_whole_log_hours_are_drawn(lake: TemporaryLake) -> None:
    from spark_jobs.grouping.advice_values import as_json
    from spark_jobs.grouping.job import AdviceRequest, give_advice

    hours = [f"2026-03-01T{number:02d}" for number in range(6)]
    for number, hour in enumerate(hours):
        lake.land(hour, {"a.json": b"".join(click(f"{hour}-{n}", f"{hour}:00:{n:02d}Z") for n in range(10 + number))})
    end = "2026-03-01T06"
    lake.run("ingest", hours[0], end)
    arguments = JobArguments.of("web", hours[0], end, None)
    clicks_of = {}
    for most in (75, 74, 40, 1):
        request = AdviceRequest("url", (1, 2), ("fields", "shuffle"), most_clicks=most)
        advice = as_json(give_advice(lake.spark, lake.settings, arguments, request, is_measured=False))
        clicks_of[most] = (advice["drawn_hours"], advice["clicks"])
        assert all(sum(load["rows"]) == advice["clicks"] for load in advice["groupings"])
        assert advice["recommendation"]["reason"]
    assert clicks_of[75] == (None, sum(range(10, 16)))
    assert clicks_of[74][0] == 5
    assert 60 <= clicks_of[74][1] <= 65
    # Three hours have 33 to 42 clicks; the fewest are one hour's.
    assert clicks_of[40][0] in (2, 3)
    assert clicks_of[40][1] <= 40
    assert clicks_of[1][0] == 1

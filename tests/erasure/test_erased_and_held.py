"""What is published of a held hour stays as it was: so the erasure is not complete before somebody has decided."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from include.errors import ClickmillError
from include.hours import Hour
from include.tables import PUBLISHED_CLICKS_BY_URL_HOURLY
from spark_jobs.erasure.requests import Requests
from spark_jobs.publish import decide_held
from tests.erasure.erased_lake import certificate, erase
from tests.support.landed_faults import START, fine_lines
from tests.support.temporary_lake import TemporaryLake, click

pytestmark = [pytest.mark.spark, pytest.mark.slow]

VISITOR, HOUR = "visitor-one", str(START)
LINES = [*fine_lines(START), click("e-one", f"{HOUR}:05:00Z", visitor_id=VISITOR)]


def published(lake: TemporaryLake) -> int:
    return sum(row["click_count"] for row in lake.rows(PUBLISHED_CLICKS_BY_URL_HOURLY))


@pytest.fixture(scope="module")
def held(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    """The hour is published, and then held, because it came again with nonsense."""
    lake = make_lake("held")
    for nonsense in (b"", b"nonsense\n" * 10 * len(LINES)):
        lake.land(HOUR, {"a.json": b"".join(LINES) + nonsense})
        lake.run_jobs(HOUR, str(START.plus(1)), "ingest", "aggregate", "validate", "publish")
    return lake


@pytest.fixture
def lake(held: TemporaryLake, tmp_path: Path) -> TemporaryLake:
    return held.copy(tmp_path / "copy")


def test_a_held_hour_is_decided_on_before_the_erasure_is_complete(lake: TemporaryLake) -> None:
    hour, clicks = HOUR, published(lake)
    assert clicks > 60
    with pytest.raises(ClickmillError, match=f"not complete: published as they were before: {hour}; decide on them"):
        erase(lake, Requests.of([VISITOR]))
    assert certificate(lake)["state"] == "begun"
    assert published(lake) == clicks

    decision = decide_held.Decision(Hour.parse(hour), "publish", "Ada", "the nonsense is known")
    decide_held.decide(lake.spark, lake.settings, decision)
    erase(lake, Requests.of([VISITOR]))
    assert certificate(lake)["state"] == "completed"
    assert published(lake) == clicks - 1
    # The decision holds: nothing was counted again.
    assert decide_held.decide(lake.spark, lake.settings, decision)[0].startswith(
        f"{hour}: published anyway (as Ada had"
    )


def test_a_dropped_hour_is_released_before_an_erasure_of_its_visitor_is_complete(lake: TemporaryLake) -> None:
    """An erasure of somebody else leaves it as it is published, and its certificate names it."""
    hour, clicks = HOUR, published(lake)
    decide_held.decide(lake.spark, lake.settings, decide_held.Decision(Hour.parse(hour), "drop", "Ada", "lost"))
    lake.land(hour, {"a.json": b"".join(LINES[10:])})

    with pytest.raises(ClickmillError, match=f"not complete: published as they were before: {hour}; decide on them"):
        erase(lake, Requests.of([VISITOR]))
    assert published(lake) == clicks
    assert any(hour in place for place in certificate(lake)["outside"])

    release = decide_held.Decision(Hour.parse(hour), "release", "Ada", "the erasure needs it")
    decide_held.decide(lake.spark, lake.settings, release)
    erase(lake, Requests.of([VISITOR]))
    assert certificate(lake)["state"] == "completed"
    assert not any(hour in place for place in certificate(lake)["outside"])
    no_click = 1
    assert published(lake) == len(LINES) - 10 - no_click - 1

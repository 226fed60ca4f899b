"""What the record of backfills says of each, and how long one will take."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from include.backfills import Backfill, Measured, backfills_of, staging_of
from include.errors import UsageError
from include.hours import Hour, HourRange, LogHour
from include.journal import BACKFILL, Act, journal_row
from spark_jobs.backfill.estimate import estimated_seconds
from spark_jobs.backfill.plan import Request

START = Hour.parse("2026-03-01T00")
RANGE = HourRange(START, START.plus(12))
URLS, COUNTRIES = "published_clicks_by_url_hourly", "published_clicks_by_country_hourly"


def at(minute: float) -> datetime:
    return datetime(2026, 3, 2, tzinfo=UTC) + timedelta(minutes=minute)


def rows(*events: str | tuple[str, dict[str, Any]], is_staged: bool = True, of: str = "a") -> list[dict[str, Any]]:
    """The events, a minute each, of a backfill of web in chunks of 5 hours."""
    told = [(event, {}) if isinstance(event, str) else event for event in events]
    told[0] = told[0][0], {"chunk_hours": 5, "is_staged": is_staged}
    return [
        journal_row(
            Act(of, "backfill_clicks"), BACKFILL, of, event, at(minute),
            hours=RANGE, source="web", actor="Ada", because="seen", details=details,
        )
        for minute, (event, details) in enumerate(told)
    ]  # fmt: skip


def backfill(*events: str | tuple[str, dict[str, Any]], is_staged: bool = True) -> Backfill:
    """What the events say, in whatever order they are read."""
    shuffled = rows(*events, is_staged=is_staged)
    random.Random(7).shuffle(shuffled)
    return backfills_of(shuffled)["a"]


def chunk_done(chunk: int) -> tuple[str, dict[str, Any]]:
    return "chunk_done", {"chunk": str(START.plus(chunk)), "log_hours": 5, "bytes": 10, "seconds": 2.0}


def publishing(hours: list[int], **versions: int) -> tuple[str, dict[str, Any]]:
    return "publishing", {"versions": versions, "click_hours": [str(START.plus(hour)) for hour in hours]}


COMPARED = ("compared", {"counts": "c1"})


@pytest.mark.parametrize(
    ("events", "state", "is_open", "is_staging"),
    [
        (("begun",), "running", True, True),
        (("begun", chunk_done(0)), "running", True, True),
        (("begun", chunk_done(0), COMPARED), "waiting", True, True),
        (("begun", COMPARED, "approved"), "swapping", True, True),
        (("begun", COMPARED, "approved", publishing([0]), ("swapping", {"table": URLS})), "swapping", True, True),
        (("begun", COMPARED, "approved", "swapped"), "published", False, False),
        (("begun", COMPARED, "dropped"), "dropped", False, False),
        (("begun", "dropped"), "dropped", False, False),
        (("begun", COMPARED, "approved", "swapped", "undoing"), "undoing", True, False),
        (("begun", COMPARED, "approved", "swapped", "undoing", "undone"), "undone", False, False),
    ],
)
def test_the_state_follows_from_the_events(events: Any, state: str, is_open: bool, is_staging: bool) -> None:
    record = backfill(*events)
    assert (record.state, record.is_open, record.is_staging) == (state, is_open, is_staging)
    # One that is not staged keeps nothing from being published.
    assert not backfill(*events, is_staged=False).is_staging


def test_the_marker_says_which_tables_have_the_approved_counts() -> None:
    swaps = [("swapping", {"table": URLS}), ("swapping", {"table": COUNTRIES})]
    assert backfill("begun", COMPARED, "approved").swapped_tables == ()
    assert backfill("begun", COMPARED, "approved", swaps[0]).swapped_tables == (URLS,)
    assert backfill("begun", COMPARED, "approved", *swaps).swapped_tables == (COUNTRIES, URLS)


def test_a_click_hour_published_twice_goes_back_to_before_the_first_time() -> None:
    record = backfill("begun", publishing([0, 1], u=4), publishing([1, 2], u=5), "finished", is_staged=False)
    assert {hour.hour: dict(of.versions) for hour, of in record.published.items()} == {
        0: {"u": 4},
        1: {"u": 4},
        2: {"u": 5},
    }
    assert [of.last_at for _, of in sorted(record.published.items())] == [at(1), at(2), at(2)]


def test_only_log_hours_of_its_source_and_range_are_staged() -> None:
    staging = [backfill("begun")]
    others = map(LogHour.parse, ("access 2026-03-01T05", "web 2026-02-28T23", "web 2026-03-01T12"))
    assert staging_of(staging, others) is None
    assert staging_of(staging, map(LogHour.parse, ("web 2026-03-01T12", "web 2026-03-01T11"))) is staging[0]
    assert staging_of([backfill("begun", "dropped")], [LogHour.parse("web 2026-03-01T05")]) is None


def test_chunks_are_the_range_and_the_last_may_be_short() -> None:
    assert [len(chunk) for chunk in RANGE.chunks(5)] == [5, 5, 2]
    assert [hour for chunk in RANGE.chunks(5) for hour in chunk] == list(RANGE)
    assert RANGE.chunks(1000) == [RANGE]


@pytest.mark.parametrize(("source", "chunk", "message"), [("all", 5, "one source by name"), ("web", 0, "above 0")])
def test_what_cannot_be_asked_for_is_said(source: str, chunk: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Request(source, RANGE, chunk)


def measured(*chunks: tuple[int, int, float]) -> list[Measured]:
    return [Measured(hours, size, seconds, at(minute)) for minute, (hours, size, seconds) in enumerate(chunks)]


def test_nothing_measured_estimates_nothing() -> None:
    assert estimated_seconds([], [(24, 10)]) is None


def test_an_estimate_finds_fixed_time_and_time_per_hour_and_byte() -> None:
    shapes = [(1, 10_000_000), (24, 1_000_000), (168, 90_000_000), (50, 2_000_000), (100, 0)]
    known = measured(*((hours, size, 5 + 0.25 * hours + 2e-7 * size) for hours, size in shapes))
    expected = (5 + 0.25 * 10 + 2e-7 * 4e6) + (5 + 0.25 * 720 + 2e-7 * 7e8)
    assert estimated_seconds(known, [(10, 4_000_000), (720, 700_000_000)]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("chunks", "asked", "expected"),
    [
        ([(24, 1_000_000, 12.0)], (48, 2_000_000), 24.0),
        ([(24, 1_000_000, 12.0), (24, 1_000_000, 14.0)], (24, 1_000_000), 13.0),
        # Never below 0, though the larger of them was the faster.
        ([(10, 0, 20.0), (100, 0, 10.0)], (5, 0), 15.0),
    ],
)
def test_an_estimate_of_few_chunks_stays_with_what_they_can_say(
    chunks: list[tuple[int, int, float]], asked: tuple[int, int], expected: float
) -> None:
    assert estimated_seconds(measured(*chunks), [asked]) == pytest.approx(expected)

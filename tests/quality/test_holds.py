"""When a click hour is held, and what a decision on it is worth."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from include.holds import (
    DROPPED,
    HELD,
    PUBLISHED,
    PUBLISHED_ANYWAY,
    SUITE,
    ClickHourState,
    Findings,
    approval_run_id,
    click_hour_state,
    event_row,
)
from include.log_hours import Hour
from include.tables import QUALITY_RESULTS
from spark_jobs.quality.held_hours import arguments_for

HOUR = Hour.parse("2026-03-01T05")
LOG_HOUR = f"web {HOUR}"
LATER = f"web {HOUR.plus(1)}"


def at(minute: float) -> datetime:
    return datetime(2026, 3, 1, 7, tzinfo=UTC) + timedelta(minutes=minute)


def checked(partition: str, minute: float, outcome: str = "pass", **of: Any) -> dict[str, Any]:
    """A row of a validation."""
    row = dict(
        run_id=f"run-{minute}", validated_at=at(minute), suite="clicks", partition=partition, check_id="share",
        expectation="few", severity="critical", outcome=outcome, observed="many", examples=[], actor=None,
    )  # fmt: skip
    return row | of


def event(
    minute: float, outcome: str, because: str = "", actor: str | None = None, examples: Sequence[str] = ()
) -> dict[str, Any]:
    return event_row(f"run-{minute}", at(minute), HOUR, outcome, because, actor=actor, examples=examples)


def state(*rows: dict[str, Any], counted: float | None = 1, **log_hours: float) -> ClickHourState:
    """The hour after ingestion at 0 (or as told, by log hour) and counting at 1."""
    ingested = {name.replace("_", " "): at(minute) for name, minute in log_hours.items()} or {LOG_HOUR: at(0)}
    counted_at = at(counted) if counted is not None else None
    return click_hour_state(HOUR, ingested, counted_at, Findings.of(rows))


FINE = (checked(str(HOUR), 2), checked(LOG_HOUR, 2))
BAD = (checked(str(HOUR), 2), checked(LOG_HOUR, 2, "fail"))


def test_an_hour_without_critical_failures_can_be_published() -> None:
    assert state(*FINE).can_be_published
    assert state(checked(str(HOUR), 2, "fail", severity="warning"), checked(LOG_HOUR, 2)).can_be_published
    assert state(checked(str(HOUR), 2, "not_enough_history"), checked(LOG_HOUR, 2)).can_be_published


def test_a_critical_failure_of_the_hour_or_of_a_log_hour_with_clicks_for_it_holds_it() -> None:
    for rows, partition in ((BAD, LOG_HOUR), ((checked(str(HOUR), 2, "fail"), checked(LOG_HOUR, 2)), str(HOUR))):
        held = state(*rows)
        assert held.is_held
        assert held.is_newly_held
        assert not held.can_be_published
        assert held.reasons == f"{partition}: share"
        assert [failure.said for failure in held.failures] == [f"{partition}: expected few; found many"]


def test_only_the_newest_run_of_a_suite_counts() -> None:
    assert state(*BAD, checked(str(HOUR), 3), checked(LOG_HOUR, 3)).can_be_published
    assert state(*FINE, checked(str(HOUR), 3), checked(LOG_HOUR, 3, "fail")).is_held
    # Another suite's later run says nothing of this one.
    assert state(*BAD, checked(LOG_HOUR, 3, suite="volume")).is_held


def test_the_same_reasons_and_numbers_are_said_once_and_others_again() -> None:
    told = event(3, HELD, f"{LOG_HOUR}: share", examples=[f"{LOG_HOUR}: expected few; found many"])
    again = checked(LOG_HOUR, 4, "fail")
    assert state(*BAD, told, again).is_held
    assert not state(*BAD, told, again).is_newly_held
    assert state(*BAD, told, checked(LOG_HOUR, 4, "fail", observed="even more")).is_newly_held
    assert state(*BAD, told, checked(LOG_HOUR, 4, "fail", check_id="other")).is_newly_held
    # Lifted and failing again is a new hold.
    assert state(*BAD, told, event(4, PUBLISHED), again).is_newly_held


@pytest.mark.parametrize(
    ("decision", "published", "dropped"), [(PUBLISHED_ANYWAY, True, False), (DROPPED, False, True)]
)
def test_a_decision_is_for_the_counts_that_there_were(decision: str, published: bool, dropped: bool) -> None:
    rows = (*BAD, event(3, HELD, f"{LOG_HOUR}: share"), event(4, decision, "because", "Ada"))
    decided = state(*rows)
    assert (decided.can_be_published, decided.is_dropped, decided.is_held) == (published, dropped, False)
    # Validated again, but not counted again.
    assert not state(*rows, checked(LOG_HOUR, 5, "fail")).is_held
    counted_again = state(*rows, checked(str(HOUR), 6), checked(LOG_HOUR, 6, "fail"), counted=5)
    assert counted_again.is_newly_held
    # Emptied: there are no counts, but the log hour was ingested again.
    emptied = state(*rows, checked(str(HOUR), 6), checked(LOG_HOUR, 6, "fail"), counted=None, **{LOG_HOUR: 5})
    assert emptied.is_newly_held
    # Fixed, it needs no decision any more.
    fixed = state(*rows, checked(str(HOUR), 6), checked(LOG_HOUR, 6), counted=5)
    assert fixed.can_be_published


def test_counts_have_another_name_whenever_they_are_made_again_or_a_log_hour_comes_again() -> None:
    names = [
        state(*BAD).counts,
        state(*BAD, counted=5).counts,
        state(*BAD, **{LOG_HOUR: 6}).counts,
        state(*BAD, counted=None).counts,
    ]
    assert len(set(names)) == 4
    # However often they are validated, and whatever is said of them.
    assert state(*BAD, checked(LOG_HOUR, 7, "fail", observed="other"), event(8, HELD)).counts == names[0]


def test_the_newest_event_is_the_state_whatever_the_order_of_the_rows() -> None:
    rows = [*BAD, event(3, HELD, "x"), event(4, DROPPED, "y", "Ada")]
    for order in (rows, rows[::-1]):
        found = state(*order).event
        assert found
        assert (found.outcome, found.because, found.actor) == (DROPPED, "y", "Ada")


def test_counts_that_are_older_or_newer_than_what_was_judged_wait() -> None:
    assert "has not been validated" in (state(checked(LOG_HOUR, 2)).waits_for or "")
    assert "counted again since" in (state(*FINE, counted=3).waits_for or "")
    later = state(*FINE, checked(LATER, 4), counted=1, **{LOG_HOUR: 0, LATER: 3})
    assert later.waits_for == f"{HOUR} is left to the run of {LATER}, which was ingested later"


def test_a_log_hour_that_nobody_has_judged_yet_keeps_its_click_hours_back() -> None:
    """A run beside it has counted its clicks already: they must not slip through before they are judged."""
    both = {LOG_HOUR: 0.0, LATER: 0.5}
    assert state(*FINE, **both).waits_for == f"{HOUR} is left to the run of {LATER}, which has yet to validate it"
    assert state(*FINE, checked(LATER, 2), **both).can_be_published
    ingested_again = {LOG_HOUR: 0.0, LATER: 2.5}
    assert not state(
        checked(str(HOUR), 4), checked(LOG_HOUR, 2), checked(LATER, 2), counted=3, **ingested_again
    ).can_be_published


def test_a_log_hour_that_was_validated_and_ingested_again_is_to_be_validated_again() -> None:
    rows = (*FINE, checked(LATER, 2))
    assert state(*rows, **{LOG_HOUR: 0, LATER: 0.5}).ingested_again == set()
    assert state(*rows, **{LOG_HOUR: 0, LATER: 3}).ingested_again == {LATER}
    # One that was never validated is another run's.
    assert state(*FINE, **{LOG_HOUR: 0, LATER: 3}).ingested_again == set()
    ranges = arguments_for({LATER, LOG_HOUR, f"access {HOUR}", f"web {HOUR.plus(3)}"})
    assert [f"{of.source} {of.log_hours}" for of in ranges] == [
        f"access {HOUR}",
        f"web {HOUR}..{HOUR.plus(2)}",
        f"web {HOUR.plus(3)}",
    ]


def test_an_event_is_a_row_of_the_table() -> None:
    row = event_row("run", at(1), HOUR, HELD, "why", examples=map(str, range(30)))
    assert (row["suite"], row["partition"], row["check_id"], row["outcome"]) == (SUITE, str(HOUR), HELD, HELD)
    assert (row["severity"], row["observed"], len(row["examples"])) == ("info", "why", 20)
    assert all(row[name] is not None for name in QUALITY_RESULTS.required_columns)


def test_each_hold_has_one_approval_run() -> None:
    first, second = (Findings.of([event(minute, HELD, "x")]).events[str(HOUR)] for minute in (3, 4))
    assert approval_run_id(HOUR, first) != approval_run_id(HOUR, second)
    assert approval_run_id(HOUR, first) == f"{HOUR}_run-3"

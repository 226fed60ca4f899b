"""When a click hour is held, and what a decision on it is worth."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.holds import (
    DROPPED,
    HELD,
    PUBLISHED,
    PUBLISHED_ANYWAY,
    ClickHourState,
    Findings,
    approval_run_id,
    carried_out,
    click_hour_state,
    event_row,
    histories_of,
    is_of_known_incident,
)
from include.hours import Hour, LogHour
from include.journal import Act
from include.tables import JOURNAL
from spark_jobs.hours.held_hours import arguments_for

HOUR = Hour.parse("2026-03-01T05")
LOG_HOUR = f"web {HOUR}"
LATER = f"web {HOUR.plus(1)}"


def at(minute: float) -> datetime:
    return datetime(2026, 3, 1, 7, tzinfo=UTC) + timedelta(minutes=minute)


def checked(partition: str, minute: float, outcome: str = "pass", **of: Any) -> dict[str, Any]:
    """A row of a validation."""
    row = dict(
        run_id=f"run-{minute}", validated_at=at(minute), suite="clicks", partition=partition, check_id="share",
        expectation="few", severity="critical", outcome=outcome, observed="many",
    )  # fmt: skip
    return row | of


def act(minute: float) -> Act:
    return Act(f"run-{minute}", "publish_clicks")


def event(minute: float, outcome: str, because: str = "", actor: str | None = None) -> dict[str, Any]:
    return event_row(act(minute), at(minute), HOUR, outcome, because, actor=actor)


def findings(*rows: dict[str, Any]) -> Findings:
    """From rows of either table."""
    return Findings.of([row for row in rows if "suite" in row], [row for row in rows if "kind" in row])


def state(*rows: dict[str, Any], counted: float | None = 1, **log_hours: float) -> ClickHourState:
    """The hour after ingestion at 0 (or as told, by log hour) and counting at 1."""
    names = {name.replace("_", " "): at(minute) for name, minute in log_hours.items()} or {LOG_HOUR: at(0)}
    ingested = {LogHour.parse(name): moment for name, moment in names.items()}
    counted_at = at(counted) if counted is not None else None
    return click_hour_state(HOUR, ingested, counted_at, findings(*rows))


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
        assert [failure.described for failure in held.failures] == [f"{partition}: expected few; found many"]


def test_only_the_newest_run_of_a_suite_counts() -> None:
    assert state(*BAD, checked(str(HOUR), 3), checked(LOG_HOUR, 3)).can_be_published
    assert state(*FINE, checked(str(HOUR), 3), checked(LOG_HOUR, 3, "fail")).is_held
    # Another suite's later run says nothing of this one.
    assert state(*BAD, checked(LOG_HOUR, 3, suite="volume")).is_held


def test_the_same_reasons_and_numbers_are_said_once_and_others_again() -> None:
    told = event_row(act(3), at(3), HOUR, HELD, f"{LOG_HOUR}: share", findings=state(*BAD).failures)
    again = checked(LOG_HOUR, 4, "fail")
    assert state(*BAD, told, again).is_held
    assert not state(*BAD, told, again).is_newly_held
    assert state(*BAD, told, checked(LOG_HOUR, 4, "fail", observed="even more")).is_newly_held
    assert state(*BAD, told, checked(LOG_HOUR, 4, "fail", check_id="other")).is_newly_held
    # Lifted and failing again is a new hold.
    assert state(*BAD, told, event(4, PUBLISHED), again).is_newly_held


def share(value: float | None, minute: float = 2, outcome: str = "fail", **of: Any) -> dict[str, Any]:
    """The log hour's check, of a share that is to be at most a half."""
    observed = f"share = {value}"
    return checked(LOG_HOUR, minute, outcome, observed=observed, observed_value=value, highest=0.5, **of)


def decided(minute: float, outcome: str, *shown: dict[str, Any]) -> dict[str, Any]:
    """A person's decision, who was shown what these checks have found."""
    failures = [failure for of in findings(*shown).failures.values() for failure in of]
    return event_row(act(minute), at(minute), HOUR, outcome, "because", findings=failures, actor="Ada")


@pytest.mark.parametrize(
    ("decision", "published", "dropped"), [(PUBLISHED_ANYWAY, True, False), (DROPPED, False, True)]
)
def test_an_answer_stands_while_nothing_worse_is_found(decision: str, published: bool, dropped: bool) -> None:
    rows = (checked(str(HOUR), 2), share(0.7), event(3, HELD, f"{LOG_HOUR}: share"), decided(4, decision, share(0.7)))

    def again(*results: dict[str, Any]) -> tuple[bool, bool, bool]:
        """Counted again at 5, and this found at 6: whether it is published, dropped, held."""
        state_then = state(*rows, checked(str(HOUR), 6), *results, counted=5)
        return state_then.can_be_published, state_then.is_dropped, state_then.is_held

    stands = (published, dropped, False)
    asked_again = (False, dropped, True)
    at_once = state(*rows)
    assert (at_once.can_be_published, at_once.is_dropped, at_once.is_held) == stands
    assert again(share(0.7, 6)) == stands
    assert again(share(0.6, 6)) == stands
    # 1 % further from a half.
    assert again(share(0.7019, 6)) == stands
    assert again(share(0.7021, 6)) == asked_again
    assert again(share(0.99, 6)) == asked_again
    assert again(share(None, 6)) == asked_again
    # Another check, another suite's, another log hour's.
    assert again(share(0.7, 6), share(0.7, 6, check_id="other")) == asked_again
    assert again(share(0.7, 6), share(0.7, 6, suite="volume")) == asked_again
    assert again(share(0.7, 6), checked(str(HOUR), 6, "fail")) == asked_again
    # Fixed: nothing is to be decided. What was dropped stays dropped.
    assert again(share(0.1, 6, "pass")) == (not dropped, dropped, False)
    fixed = state(*rows, checked(str(HOUR), 6), share(0.1, 6, "pass"), counted=5)
    assert (at_once.is_decided, fixed.is_decided) == (True, dropped)
    # Emptied: there are no counts, but the log hour was ingested again.
    emptied = state(*rows, checked(str(HOUR), 6), share(0.9, 6), counted=None, **{LOG_HOUR: 5})
    assert emptied.is_newly_held
    # Worse, and then again as it was shown.
    worse = (checked(str(HOUR), 6), share(0.9, 6), event(7, HELD, f"{LOG_HOUR}: share"))
    back = state(*rows, *worse, checked(str(HOUR), 9), share(0.7, 9), counted=8)
    assert (back.can_be_published, back.is_dropped, back.is_held) == stands


def test_an_answer_is_over_once_the_hour_was_published_by_passing_its_checks() -> None:
    rows = (checked(str(HOUR), 2), share(0.7), decided(3, PUBLISHED_ANYWAY, share(0.7)), event(5, PUBLISHED))
    assert state(*rows, checked(str(HOUR), 7), share(0.7, 7), counted=6).is_held


@pytest.mark.parametrize("observed", ["a, b", "", "nothing"])
def test_a_finding_without_a_number_is_the_same_only_if_it_is_equal(observed: str) -> None:
    shown = checked(LOG_HOUR, 2, "fail", observed="a, b")
    rows = (checked(str(HOUR), 2), shown, decided(3, PUBLISHED_ANYWAY, shown), checked(str(HOUR), 5))
    assert state(*rows, checked(LOG_HOUR, 5, "fail", observed=observed), counted=4).is_held == (observed != "a, b")


@pytest.mark.parametrize(
    ("shown", "now", "is_worse"),
    [
        # At least 100 are expected: fewer is worse.
        ((60, 100, None), (60, 100, None), False),
        ((60, 100, None), (80, 100, None), False),
        ((60, 100, None), (59, 100, None), True),
        ((60, 100, None), (59.7, 100, None), False),
        # A bound that was lowered makes a number that nobody has seen no better.
        ((60, 100, None), (50, 60, None), True),
        # Between 100 and 200: too many is something else than too few.
        ((90, 100, 200), (210, 100, 200), True),
        ((290, 100, 200), (210, 100, 200), False),
        # Equal to what is counted elsewhere, of which there is more by now.
        ((1000, 990, 990), (1510, 1500, 1500), False),
        ((1000, 990, 990), (1511, 1500, 1500), True),
        ((1000, 990, 990), (990, 1000, 1000), True),
        # None is expected.
        ((3, 0, 0), (3, 0, 0), False),
        ((3, 0, 0), (4, 0, 0), True),
        ((3000, 0, 0), (3030, 0, 0), False),
        ((3000, 0, 0), (3031, 0, 0), True),
    ],
)
def test_how_much_worse_is_worse(
    shown: tuple[float | None, ...], now: tuple[float | None, ...], is_worse: bool
) -> None:
    def finding(minute: float, of: tuple[float | None, ...]) -> dict[str, Any]:
        value, lowest, highest = of
        return checked(LOG_HOUR, minute, "fail", observed=f"{of}", observed_value=value, lowest=lowest, highest=highest)

    rows = (checked(str(HOUR), 2), finding(2, shown), decided(3, PUBLISHED_ANYWAY, finding(2, shown)))
    assert state(*rows, checked(str(HOUR), 5), finding(5, now), counted=4).is_held == is_worse


def test_what_is_shown_does_not_creep_up() -> None:
    """Carried out for counts that came later, a decision is for what was shown first."""
    rows = [checked(str(HOUR), 2), share(0.7), decided(3, PUBLISHED_ANYWAY, share(0.7))]
    for minute, value in ((5, 0.7015), (8, 0.7019)):
        rows += [checked(str(HOUR), minute), share(value, minute)]
        state_then = state(*rows, counted=minute - 1)
        assert state_then.can_be_published
        rows.append(carried_out(act(minute), at(minute + 1), state_then))
    assert state(*rows, checked(str(HOUR), 11), share(0.7025, 11), counted=10).is_held
    answer = state(*rows, counted=7).answer
    assert answer
    assert (answer.actor, answer.at, answer.answered_at) == ("Ada", at(9), at(3))


def test_what_an_erasure_took_from_a_record_covers_nothing() -> None:
    redacted = decided(3, PUBLISHED_ANYWAY, share(0.7)) | {"details": {"findings": "(erased)"}}
    assert state(checked(str(HOUR), 2), share(0.7), redacted).is_held


def test_one_question_goes_on_however_often_an_hour_is_counted() -> None:
    def held(minute: float, value: float, note: str | None = None) -> dict[str, Any]:
        failures = findings(share(value)).failures[LOG_HOUR]
        return event_row(act(minute), at(minute), HOUR, HELD, f"{LOG_HOUR}: share", findings=failures, note=note)

    rows = [checked(str(HOUR), 2), share(0.7), held(3, 0.7)]
    first = state(*rows)
    assert first.asked == first.event
    # The same again is the same question.
    rows += [checked(str(HOUR), 4), share(0.7, 4), held(5, 0.7)]
    assert state(*rows, counted=3.5).asked == first.asked
    rows += [checked(str(HOUR), 6), share(0.9, 6), held(7, 0.9)]
    worse = state(*rows, counted=5)
    assert worse.asked == worse.event != first.event, "something worse is another question"
    # Counted again: it has been asked.
    assert state(*rows, checked(str(HOUR), 9), share(0.9, 9), counted=8).asked == worse.asked
    # Somebody's answer came too late: that is another question.
    rows += [held(10, 0.9, "the answer of Ada was not carried out")]
    refused = state(*rows, counted=8)
    assert refused.asked.note
    assert len(refused.holding) == 4


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
        newest_event = state(*order).event
        assert newest_event
        assert (newest_event.outcome, newest_event.because, newest_event.actor) == (DROPPED, "y", "Ada")


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
    assert state(*rows, **{LOG_HOUR: 0, LATER: 3}).ingested_again == {LogHour.parse(LATER)}
    # One that was never validated is another run's.
    assert state(*FINE, **{LOG_HOUR: 0, LATER: 3}).ingested_again == set()
    ranges = arguments_for(map(LogHour.parse, (LATER, LOG_HOUR, f"access {HOUR}", f"web {HOUR.plus(3)}")))
    assert [f"{of.source} {of.log_hours}" for of in ranges] == [
        f"access {HOUR}",
        f"web {HOUR}..{HOUR.plus(2)}",
        f"web {HOUR.plus(3)}",
    ]


def test_an_event_is_a_row_of_the_table() -> None:
    failures = findings(*(share(number, check_id=f"share_{number}") for number in range(30))).failures[LOG_HOUR]
    row = event_row(act(1), at(1), HOUR, HELD, "why", findings=failures, note="too late", backfill_id="a")
    assert all(row[name] is not None for name in JOURNAL.required_columns)
    assert (row["kind"], row["year"], row["first_hour"], row["end_hour"]) == (
        "click_hour", 2026, str(HOUR), str(HOUR.plus(1))
    )  # fmt: skip
    (told,) = histories_of([row])[HOUR]
    assert (told.act_id, told.at, told.outcome, told.because) == ("run-1", at(1), HELD, "why")
    assert (told.actor, told.answered_at, told.note, told.backfill_id) == (None, None, "too late", "a")
    assert (told.findings, len(told.examples)) == (failures, 20)


def test_each_hold_has_one_approval_run() -> None:
    first, second = (histories_of([event(minute, HELD, "x")])[HOUR][-1] for minute in (3, 4))
    assert approval_run_id(HOUR, first) != approval_run_id(HOUR, second)
    assert approval_run_id(HOUR, first) == f"{HOUR}_run-3"


def held_for(because: str, number: int, minute: float) -> dict[str, Any]:
    hour = HOUR.plus(number)
    return event_row(act(minute), at(minute), hour, HELD, because.format(hour=hour))


@pytest.mark.parametrize(
    ("rows", "is_known"),
    [
        ([held_for("web {hour}: share", 1, 1)], True),
        ([held_for("web {hour}: share", 1, 3)], False),
        ([held_for("web {hour}: lines", 1, 1)], False),
        ([held_for("web {hour}: share", 1, 1), event_row(act(2), at(2), HOUR.plus(1), PUBLISHED, "fine")], False),
        ([held_for("web {hour}: lines", 1, 1), held_for("web {hour}: share", 1, 2.5)], True),
    ],
    ids=["held before", "held after", "other cause", "over", "the cause has changed"],
)
def test_an_hour_is_of_a_known_incident_if_another_is_held_for_the_same_and_was_before(
    rows: list[dict[str, Any]], is_known: bool
) -> None:
    histories = histories_of([held_for("web {hour}: share", 0, 2), *rows])
    assert is_of_known_incident(HOUR, histories) == is_known


@given(st.lists(st.tuples(st.integers(0, 6), st.sampled_from(["web {hour}: a", "web {hour}: b", PUBLISHED]))))
def test_of_the_hours_that_are_held_for_one_cause_one_is_the_first(happened: list[tuple[int, str]]) -> None:
    rows = [
        event_row(act(minute), at(minute // 3), HOUR.plus(number), PUBLISHED, "fine")
        if because == PUBLISHED
        else held_for(because, number, minute // 3)
        for minute, (number, because) in enumerate(happened)
    ]
    histories = histories_of(rows)
    for because in ("web {hour}: a", "web {hour}: b"):
        held = [
            hour
            for hour, events in histories.items()
            if events[-1].outcome == HELD and events[-1].because == because.format(hour=hour)
        ]
        first = [hour for hour in held if not is_of_known_incident(hour, histories)]
        assert len(first) == bool(held)

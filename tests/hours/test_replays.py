"""Replays on record: found again by the same words after a kill, and said once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from include.hours import Hour, HourRange
from include.journal import read_events
from spark_jobs.hours.replays import (
    BEGUN,
    DONE,
    WITHDRAWING,
    WITHDRAWN,
    AskedReplay,
    open_replays,
    open_withdrawals,
    say,
)
from spark_jobs.lake.journal import signed_act
from spark_jobs.lake.lake import Lake

if TYPE_CHECKING:
    from include.settings import Settings

HOURS = HourRange(Hour.parse("2026-03-01T05"), Hour.parse("2026-03-01T08"))
RULE = "replace(raw, 'x', '')"


@pytest.fixture
def lake(settings: Settings) -> Lake:
    return Lake(None, settings)


def say_all(lake: Lake, asked: AskedReplay, *events: str, by: str = "Ada") -> None:
    with signed_act(lake, "replay_quarantined", "web", by, "fixed") as signed:
        for event in events:
            asked.say(signed, event, 3)


def test_a_replay_that_was_killed_is_found_by_the_same_words(lake: Lake) -> None:
    asked = AskedReplay.of(lake, "web", HOURS, ("not_json",), RULE)
    say_all(lake, asked, BEGUN)
    again = AskedReplay.of(lake, "web", HOURS, ("not_json",), RULE)
    assert again == asked
    others = [
        AskedReplay.of(lake, "access", HOURS, ("not_json",), RULE),
        AskedReplay.of(lake, "web", HourRange.single(HOURS.start), ("not_json",), RULE),
        AskedReplay.of(lake, "web", HOURS, (), RULE),
        AskedReplay.of(lake, "web", HOURS, ("not_json",), None),
    ]
    assert asked.replay.id not in {other.replay.id for other in others}
    assert open_replays(lake, "web").keys() == {asked.replay.id}
    say_all(lake, asked, DONE)
    assert open_replays(lake, "web") == {}
    assert AskedReplay.of(lake, "web", HOURS, ("not_json",), RULE).replay.id != asked.replay.id


def test_what_is_on_record_is_not_said_again_but_who_goes_on_is(lake: Lake) -> None:
    asked = AskedReplay.of(lake, "web", HOURS, (), None)
    say_all(lake, asked, BEGUN)
    say_all(lake, asked, BEGUN, DONE, by="Ben")
    rows = read_events(lake.settings.lake, [])
    assert [(row["kind"], row["event"], row["actor"]) for row in rows] == [
        ("replay", "begun", "Ada"), ("act", "completed", None),
        ("act", "begun", "Ben"), ("replay", "done", "Ben"), ("act", "completed", None),
    ]  # fmt: skip
    assert rows[0]["details"] == {"reasons": "[]", "lines": "3"}


def test_a_withdrawal_is_open_until_it_is_done(lake: Lake) -> None:
    asked = AskedReplay.of(lake, "web", HOURS, (), None)
    say_all(lake, asked, BEGUN, DONE)
    with signed_act(lake, "withdraw_replay", "replay", "Eve", "wrong rule") as signed:
        say(signed, asked.replay.id, WITHDRAWING, "web", HOURS, {"lines": 3})
        assert open_withdrawals(lake, "web") == [asked.replay.id]
        say(signed, asked.replay.id, WITHDRAWN, "web", HOURS, {"lines": 3})
    assert open_withdrawals(lake, "web") == []

"""The journal: what people do is on it before it is done and after; what became of a click hour is found in it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from include.errors import ClickmillError, UsageError
from include.holds import HELD, PUBLISHED_ANYWAY, event_row, histories_of
from include.hours import Hour
from include.journal import ACT, Act, click_hours_filter, click_hours_since, in_order, read_events
from include.tables import JOURNAL
from spark_jobs.lake.journal import append_events, signed_act
from spark_jobs.lake.lake import Lake

if TYPE_CHECKING:
    from include.settings import Settings

HOUR = Hour.parse("2026-03-01T05")
NOW = datetime(2026, 3, 1, 7, tzinfo=UTC)


@pytest.fixture
def lake(settings: Settings) -> Lake:
    return Lake(None, settings)


def on_record(lake: Lake) -> list[dict[str, Any]]:
    return read_events(lake.settings.lake, [])


def test_an_act_is_on_record_before_it_is_done_and_after(lake: Lake) -> None:
    with signed_act(lake, "erase_visitor", "erasure 1", " Ada ", "asked to\n") as signed:
        signed.begin()
        (begun,) = on_record(lake)
        signed.details["rows"] = "3"
    begun_then, completed = on_record(lake)
    assert begun_then == begun
    same = {"kind": ACT, "act": "erase_visitor", "subject": "erasure 1"}
    assert begun.items() >= {**same, "event": "begun", "actor": "Ada", "because": "asked to", "details": {}}.items()
    assert completed.items() >= {**same, "event": "completed", "details": {"rows": "3"}}.items()
    assert completed["act_id"] == begun["act_id"]
    assert completed["at"] > begun["at"]


def test_who_and_why_are_recorded_once_with_what_was_decided(lake: Lake) -> None:
    with signed_act(lake, "decide_held", f"{HOUR}: publish", "Ada", "known fault") as signed:
        act = signed.act
        signed.decide([event_row(act, datetime.now(UTC), HOUR, PUBLISHED_ANYWAY, "known fault", actor=act.actor)])
    rows = on_record(lake)
    assert [(row["kind"], row["event"], row["actor"], row["because"]) for row in rows] == [
        ("click_hour", "published_anyway", "Ada", "known fault"),
        ("act", "completed", None, None),
    ]
    assert len({row["act_id"] for row in rows}) == 1


def test_what_failed_is_on_record_with_our_own_words_only(lake: Lake) -> None:
    with pytest.raises(ClickmillError), signed_act(lake, "decide_held", "2026-03-01T05", "Ada", "checked"):
        raise ClickmillError("it is being counted")
    with pytest.raises(ValueError, match="v-123"), signed_act(lake, "decide_held", "2026-03-01T05", "Ada", "checked"):
        raise ValueError("a line of v-123")
    rows = on_record(lake)
    assert [row["details"]["error"] for row in rows] == [
        "ClickmillError: it is being counted",
        "ValueError: see the log",
    ]
    assert {(row["event"], row["actor"], row["because"]) for row in rows} == {("failed", "Ada", "checked")}


@pytest.mark.parametrize(("by", "because"), [("", "checked"), ("Ada", " \t")])
def test_nobody_or_no_reason_leaves_nothing(lake: Lake, by: str, because: str) -> None:
    with pytest.raises(UsageError), signed_act(lake, "undo_backfill", "x", by, because):
        raise AssertionError("begun")
    assert not lake.exists(JOURNAL)


def test_events_of_click_hours_are_found_by_hour_and_year_in_the_order_of_their_moments(lake: Lake) -> None:
    hours = [Hour.parse("2024-12-31T23"), Hour.parse("2025-01-01T00"), HOUR, HOUR.plus(1)]
    for number, hour in enumerate([*hours, *hours]):
        at = NOW - timedelta(minutes=number)
        append_events(lake, [event_row(Act(f"run-{number}", "publish_clicks"), at, hour, HELD, f"{number}")])
    append_events(lake, [])

    def reasons_by_hour(where: Any) -> dict[Hour, list[str]]:
        histories = histories_of(lake.read_rows(JOURNAL, JOURNAL.column_names, where))
        return {hour: [event.because for event in history] for hour, history in histories.items()}

    everything = {hour: [f"{number + 4}", f"{number}"] for number, hour in enumerate(hours)}
    assert reasons_by_hour([("kind", "=", "click_hour")]) == everything
    assert reasons_by_hour(click_hours_filter(hours[1:3])) == {hour: everything[hour] for hour in hours[1:3]}
    assert reasons_by_hour(click_hours_filter([])) == {}
    assert reasons_by_hour(click_hours_since(hours[1])) == {hour: everything[hour] for hour in hours[1:]}
    assert {file.partition["year"] for file in lake.data_files(JOURNAL)} == {2024, 2025, 2026}


def test_the_journal_is_read_alike_when_it_has_been_made_few_files(lake: Lake) -> None:
    for number in range(4):
        append_events(lake, [event_row(Act("run", "publish_clicks"), NOW, HOUR.plus(number), HELD, "so")])
    before = in_order(on_record(lake))
    assert not lake.compact(JOURNAL, above_files=4)
    assert lake.compact(JOURNAL, above_files=3)
    assert len(lake.data_files(JOURNAL)) == 1
    assert sorted(on_record(lake), key=repr) == sorted(before, key=repr)

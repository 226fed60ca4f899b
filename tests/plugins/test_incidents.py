"""Incidents: which held hours are one, when it is over, and what the page says of it."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from include.holds import INCIDENT_HOURS, Event
from include.hours import Hour
from include.settings import Settings
from plugins.data_quality import incidents as module
from plugins.data_quality.incidents import incidents
from plugins.data_quality.rights import Rights
from tests.plugins.conftest import grant
from tests.plugins.quality_pages import EVIL
from tests.plugins.test_data_quality_acts import ask, boxes
from tests.support.quality_rows import append, event

START, BEGIN = Hour.parse("2026-03-01T00"), datetime(2026, 3, 10, tzinfo=UTC)


def at(minute: int) -> datetime:
    return BEGIN + timedelta(minutes=minute)


def held(number: int, because: str, minute: int) -> dict[str, Any]:
    hour = str(START.plus(number))
    return event(hour, "held", because.format(hour=hour), at=at(minute))


@pytest.fixture
def rows(settings: Settings) -> None:
    """An incident of three hours that goes on, an earlier one of the same cause that is over, and one of another."""
    rows = [held(number, "web {hour}: share", 100 + number) for number in range(100, 103)]
    rows.append(event(str(START.plus(102)), "published_anyway", "the shop says so", "ada", at=at(300)))
    rows += [held(number, "web {hour}: share", number) for number in range(2)]
    rows.append(event(str(START), "dropped", "a test", "ben", at=at(20)))
    rows.append(event(str(START.plus(1)), "published", "all passed", at=at(30)))
    rows.append(held(101, "web {hour}: lines_add_up", 400))
    append(settings.lake, rows)


@pytest.mark.usefixtures("rows")
def test_an_incident_has_one_state_and_one_history(client: TestClient, session: Session) -> None:
    ask(session, "asks_share", hour=str(START.plus(100)))
    ask(session, "asks_lines", hour=str(START.plus(101)))
    text = client.get("incidents").text
    lines, goes_on, over = re.findall(r"<section.*?</section>", text, re.DOTALL)
    assert "web: lines_add_up" in lines
    assert "1 click hour, " in lines
    assert "1 held still" in lines
    assert "3 click hours, " in goes_on
    assert "1 held still" in goes_on, "one is decided, one is held for something else by now"
    assert "by <strong>ada</strong> 2026-03-10 05:00: the shop says so" in goes_on
    assert "2 click hours, " in over
    assert "over since 2026-03-10 00:30" in over
    assert "ben" in over
    assert "ben" not in goes_on
    assert boxes(lines + goes_on + over) == [["asks_lines"], ["asks_share"]]
    of_cause = client.get("incidents", params={"cause": "web: share"}).text
    assert of_cause.count("<section") == 2
    assert "lines_add_up" not in of_cause
    assert "/incidents?cause=web%3A+share" in client.get("").text


@pytest.mark.usefixtures("rows")
def test_who_may_not_decide_reads_only(app: FastAPI, client: TestClient, session: Session) -> None:
    ask(session, "asks", hour=str(START.plus(100)))
    grant(app, Rights())
    answer = client.get("incidents")
    assert boxes(answer.text) == []
    assert "connect-src" not in answer.headers["content-security-policy"]
    assert "by <strong>ada</strong>" in answer.text


def test_a_cause_is_text_and_one_that_never_was_says_so(client: TestClient, settings: Settings) -> None:
    assert "No click hour was ever held<" in client.get("incidents").text
    append(settings.lake, [held(0, EVIL, 1)])
    text = client.get("incidents", params={"cause": f"{EVIL}?"}).text
    assert "No click hour was ever held for this" in text
    of_cause = client.get("incidents", params={"cause": EVIL}).text
    assert of_cause.count("<section") == 1
    for page in (text, of_cause, client.get("incidents").text, client.get("").text):
        assert "<script>alert" not in page


CAUSES = ("web {hour}: a", "web {hour}: b", "shop {hour}: a; web {hour}: a")
HAPPENED = st.tuples(st.integers(0, 120), st.sampled_from(CAUSES) | st.sampled_from(["published", "dropped"]))


@given(st.lists(HAPPENED, max_size=30))
def test_each_hour_of_a_cause_is_in_one_incident_with_those_near_it(happened: list[tuple[int, str]]) -> None:
    histories: dict[str, list[Event]] = {}
    expected: dict[str, set[int]] = {}
    for minute, (number, outcome) in enumerate(happened):
        if outcome in CAUSES:
            row = held(number, outcome, minute)
            expected.setdefault(outcome.replace(" {hour}", ""), set()).add(number)
        else:
            actor = "ada" if outcome == "dropped" else None
            row = event(str(START.plus(number)), outcome, "why", actor, at=at(minute))
        histories.setdefault(str(START.plus(number)), []).append(Event.of(row))
    ever_held = {
        hour: histories[hour]
        for hour in sorted(histories)
        if any(of_hour.outcome == "held" for of_hour in histories[hour])
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_INCIDENTS", 1000)
        shown = incidents(SimpleNamespace(held_histories=lambda: ever_held))  # type: ignore[arg-type]
    assert len({incident.id for incident in shown}) == len(shown)
    by_cause: dict[str, list[list[int]]] = {}
    for incident in shown:
        numbers = [Hour.parse(hour).number - START.number for hour in incident.newest]
        by_cause.setdefault(incident.cause, []).append(numbers)
        last = {number: outcome for number, outcome in happened if number in numbers}
        still = {number for number, outcome in last.items() if outcome.replace(" {hour}", "") == incident.cause}
        assert {of_hour.hour.number - START.number for of_hour in incident.held} == still
        assert incident.is_over == (not still)
    assert {cause: {number for numbers in lists for number in numbers} for cause, lists in by_cause.items()} == expected
    for lists in by_cause.values():
        lists.sort()
        for numbers in lists:
            assert all(after - before <= INCIDENT_HOURS + 1 for before, after in itertools.pairwise(numbers))
        for before, after in itertools.pairwise(lists):
            assert after[0] - before[-1] > INCIDENT_HOURS + 1

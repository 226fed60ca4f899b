"""The record of backfills: gone on with by the same arguments, and a person's decision is on it once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from include.backfills import APPROVED, COMPARED, SWAPPED
from include.errors import FinalError
from include.hours import Hour, HourRange
from include.journal import BACKFILL, read_events
from spark_jobs.backfill.record import begin, find_backfill, say, say_publishing
from spark_jobs.lake.journal import signed_act
from spark_jobs.lake.lake import Lake

if TYPE_CHECKING:
    from include.settings import Settings

START = Hour.parse("2026-12-31T22")
HOURS = HourRange(START, START.plus(4))


@pytest.fixture
def lake(settings: Settings) -> Lake:
    return Lake(None, settings)


def test_an_open_backfill_is_gone_on_with_by_the_same_arguments_alone(lake: Lake) -> None:
    begun = begin(lake, "web", HOURS, 2, is_staged=True, actor=None, because=" faulty files ")
    assert (begun.state, begun.because, begun.log_hours, begun.chunk_hours) == ("running", "faulty files", HOURS, 2)
    assert begin(lake, "web", HOURS, 2, is_staged=True, actor="Ada", because="again") == begun
    with pytest.raises(FinalError, match="over some of these hours; finish it with the same arguments"):
        begin(lake, "web", HOURS, 2, is_staged=False, actor=None, because="")
    assert begin(lake, "access", HOURS, 2, is_staged=True, actor=None, because="").id != begun.id
    assert len(read_events(lake.settings.lake, [])) == 2


def test_a_decision_on_a_backfill_is_recorded_once(lake: Lake) -> None:
    backfill = begin(lake, "web", HOURS, 2, is_staged=True, actor=None, because="")
    say(lake, backfill, COMPARED, counts="c1")
    with signed_act(lake, "decide_backfill", f"{backfill.id}: approve", "Ada", "agrees") as signed:
        backfill = say(lake, backfill, APPROVED, signed, counts="c1")
        assert backfill.state == "swapping"
        say_publishing(lake, backfill, [START, START.plus(3)])
        say(lake, backfill, SWAPPED)
    rows = read_events(lake.settings.lake, [])
    (approved,) = [row for row in rows if row["actor"] or row["because"]]
    assert (approved["event"], approved["actor"], approved["because"]) == ("approved", "Ada", "agrees")
    assert [row["event"] for row in rows if row["kind"] == BACKFILL] == [
        "begun", "compared", "approved", "publishing", "swapped",
    ]  # fmt: skip
    record = find_backfill(lake, backfill.id)
    assert (record.state, record.counts, sorted(record.published)) == ("published", "c1", [START, START.plus(3)])
    assert [(of.event, of.actor, of.because) for of in record.decisions] == [("approved", "Ada", "agrees")]

"""What was counted live is compared with the clicks, once it is final: of a real stream, with faults planted in it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from include.hours import Hour
from include.tables import QUALITY_RESULTS, STREAM_PROGRESS
from tests.stream.kafka_broker import Record
from tests.stream.streamed_lake import StreamedLake
from tests.support.live_faults import LIVE_FAULTS
from tests.support.temporary_lake import click

HOUR = Hour.parse("2026-03-01T08")
CHECKS = {"live_by_url_equals_clicks", "live_by_country_equals_clicks"}


def record(event_id: str, minutes: float, arrived: float, path: str = "once", country: str = "DE") -> Record:
    at, arrival = (HOUR.start + timedelta(minutes=offset) for offset in (minutes, arrived))
    line = click(event_id, at.isoformat(), f"http://shop.test/{path}", geo={"country": country})
    return Record(0, int(arrival.timestamp() * 1000), line)


def stream(lake: StreamedLake, *batches: list[Record], live: bool = True) -> None:
    for records in batches:
        lake.broker.produce(lake.topic, records)
        lake.read_all(live=live)


def validated(lake: StreamedLake, hour: Hour = HOUR) -> dict[str, dict[str, Any]]:
    """The newest outcome of each check of the click hour's live counts, and of what else fails in the suite."""
    lake.run("validate", str(hour))
    rows = lake.rows(QUALITY_RESULTS, without=())
    newest = max(row["validated_at"] for row in rows)
    return {
        row["check_id"]: row
        for row in rows
        if row["validated_at"] == newest and row["suite"] == "reconciliation"
        if row["check_id"] in CHECKS or row["outcome"] == "fail"
    }


@pytest.mark.slow
def test_live_counts_are_clicks_less_those_too_late_and_a_changed_row_fails_its_check(streamed: StreamedLake) -> None:
    first = [
        record("a", 1, 1, "twice"),
        record("b", 2, 2, "twice"),
        record("c", 3, 3),
        record("d", 4, 4, country="FR"),
    ]
    stream(streamed, first)
    for job in ("ingest", "aggregate"):
        streamed.run(job, str(HOUR))
    rows = validated(streamed)
    assert {name: row["outcome"] for name, row in rows.items()} == dict.fromkeys(CHECKS, "not_final")
    assert {row["observed"] for row in rows.values()} == {
        "web: 4 clicks, 4 live; not final: the watermark has not passed the hour"
    }

    # Late, and of a log hour that stays open, with one that takes the watermark past the hour; then one too late.
    stream(streamed, [record("late", 5, 61), record("next", 75, 75)], [record("too late", 6, 76)])
    rows = validated(streamed)
    assert {name: row["outcome"] for name, row in rows.items()} == dict.fromkeys(CHECKS, "pass")
    assert {row["observed"] for row in rows.values()} == {"web: 6 clicks, 5 live, 1 too late for live"}

    for number, fault in enumerate(LIVE_FAULTS):
        assert fault.plant
        fault.plant(streamed, HOUR)
        rows = validated(streamed)
        failed = {name: row for name, row in rows.items() if row["outcome"] == "fail"}
        assert {f"reconciliation.{name}" for name in failed} == {fault.check for fault in LIVE_FAULTS[: number + 1]}
        row = failed[fault.check.removeprefix("reconciliation.")]
        assert (row["severity"], row["partition"]) == (fault.severity, str(HOUR))
        assert fault.observed in row["observed"]


@pytest.mark.slow
def test_clicks_that_live_counts_have_not_read_are_no_fault_and_without_live_counts_nothing_is_judged(
    streamed: StreamedLake,
) -> None:
    stream(streamed, [record("a", 1, 1)], live=False)
    for job in ("ingest", "aggregate"):
        streamed.run(job, str(HOUR))
    assert validated(streamed) == {}, "nothing is counted live"

    stream(streamed, [record("next", 75, 75)])
    # A micro-batch without data takes the watermark on.
    assert {row["outcome"] for row in validated(streamed).values()} == {"pass"}
    stream(streamed, [record("too late", 6, 76)], live=False)
    rows = validated(streamed)
    assert {row["outcome"] for row in rows.values()} == {"not_final"}
    assert {row["observed"] for row in rows.values()} == {
        "web: 2 clicks, 1 live; not final: not all of its clicks have been read"
    }
    assert any(row["too_late_by_hour"] is not None for row in streamed.rows(STREAM_PROGRESS))

"""The audit: on record before an act is done and after, whatever becomes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from include.errors import ClickmillError, UsageError
from include.tables import AUDIT
from spark_jobs.lake.audit import audited
from spark_jobs.lake.lake import Lake

if TYPE_CHECKING:
    from include.settings import Settings


@pytest.fixture
def lake(settings: Settings) -> Lake:
    return Lake(None, settings)


def on_record(lake: Lake) -> list[dict[str, Any]]:
    rows = DeltaTable(lake.uri(AUDIT)).to_pyarrow_table().to_pylist()
    return sorted(({**row, "details": dict(row["details"])} for row in rows), key=lambda row: row["at"])


def test_an_act_is_on_record_before_it_is_done_and_after(lake: Lake) -> None:
    with audited(lake, "undo_backfill", "20260301T050000-abcd", " Ada ", "wrong files\n") as details:
        (begun,) = on_record(lake)
        details["click_hours"] = "3"
    begun_then, completed = on_record(lake)
    assert begun_then == begun
    said = {"act": "undo_backfill", "subject": "20260301T050000-abcd", "actor": "Ada", "because": "wrong files"}
    assert begun.items() >= {**said, "event": "begun", "details": {}}.items()
    assert completed.items() >= {**said, "event": "completed", "details": {"click_hours": "3"}}.items()
    assert completed["audit_id"] == begun["audit_id"]
    assert completed["at"] > begun["at"]


def test_what_failed_is_on_record_with_our_own_words_only(lake: Lake) -> None:
    with pytest.raises(ClickmillError), audited(lake, "decide_held", "2026-03-01T05", "Ada", "checked"):
        raise ClickmillError("it is being counted")
    with pytest.raises(ValueError, match="v-123"), audited(lake, "decide_held", "2026-03-01T05", "Ada", "checked"):
        raise ValueError("a line of v-123")
    failed = [row["details"]["error"] for row in on_record(lake) if row["event"] == "failed"]
    assert failed == ["ClickmillError: it is being counted", "ValueError: see the log"]


@pytest.mark.parametrize(("by", "because"), [("", "checked"), ("Ada", " \t")])
def test_nobody_or_no_reason_leaves_nothing(lake: Lake, by: str, because: str) -> None:
    with pytest.raises(UsageError), audited(lake, "undo_backfill", "x", by, because):
        raise AssertionError("begun")
    assert not lake.exists(AUDIT)


def test_many_events_are_kept_in_few_files(lake: Lake) -> None:
    for number in range(60):
        with audited(lake, "decide_held", str(number), "Ada", "checked"):
            pass
    assert len(DeltaTable(lake.uri(AUDIT)).file_uris()) <= 102
    assert {row["subject"] for row in on_record(lake)} == {str(number) for number in range(60)}

"""The account of a log hour, as it is changed by what does not read its files again."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from include.hours import Hour
from include.landing import LandedHour, as_landed_files, landed_since
from include.storage import Entry, entries, entry_of
from spark_jobs.hours.account import HourAccount, accounts_of, listed_first, with_rewritten
from spark_jobs.hours.stream_batches import account_of
from spark_jobs.lines.read_lines import LandedFile, ReadFile


def stated(path: Path) -> Entry:
    entry = entry_of(path)
    assert entry is not None
    return entry


def test_a_rewritten_file_is_read_as_before_only_if_it_was_read_in_its_former_state(tmp_path: Path) -> None:
    read, replaced, new = (tmp_path / name for name in ("read", "replaced", "new"))
    read.write_text("three\nlines\nhere\n")
    replaced.write_text("a\n")
    row = {"lines": 4, "landed_files": as_landed_files(entries(tmp_path))}
    assert landed_since(entries(tmp_path), row) == []
    new.write_text("b\n")
    replaced.write_text("c\n")
    os.utime(replaced, (0, 0))
    before = [stated(path) for path in (read, replaced, new)]
    for path in (read, replaced, new):
        path.write_text("")
    rewritten = with_rewritten(row, zip(before, map(stated, (read, replaced, new)), strict=True))
    assert landed_since(entries(tmp_path), row) == ["new", "read", "replaced"]
    assert landed_since(entries(tmp_path), rewritten) == ["new", "replaced"]
    assert rewritten["lines"] == 4


def test_of_a_stream_a_file_stays_as_it_was_listed_first_and_a_mark_as_it_is(tmp_path: Path) -> None:
    for name in ("a", "_SUCCESS"):
        (tmp_path / name).touch()
    first = as_landed_files(entries(tmp_path))
    for name in ("a", "_SUCCESS"):
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / "b").touch()
    row = listed_first({"landed_files": as_landed_files(entries(tmp_path))}, first)
    assert landed_since(entries(tmp_path), row) == ["a"]
    assert listed_first({"landed_files": None}, first)["landed_files"] is None


def test_what_rules_leave_out_is_counted_by_rule_and_is_neither_quarantined_nor_a_duplicate() -> None:
    hour = Hour.parse("2026-03-01T05")
    nothing = {"first_hour": None, "click_hour": None, "first_clicked_at": None, "last_clicked_at": None}
    outcomes: list[Any] = [
        {"log_hour_number": hour.number, "reason": reason, "lines": lines, **nothing}
        for reason, lines in (("left_out_robots", 3), ("not_json", 2), ("left_out_header", 1), ("left_out_robots", 4))
    ]
    read = [ReadFile(LandedFile(Path("a.log"), hour), 10, 100)]
    account = accounts_of([hour], read, outcomes)[hour]
    landed = LandedHour(Path("/landing"), hour, (), 0, is_closed=True)
    row = account.as_row("web", landed, datetime.now(UTC))
    assert row["left_out_by_rule"] == {"robots": 7, "header": 1}
    assert (row["lines"], row["left_out"], row["quarantined"], row["quarantined_by_reason"]) == (
        10,
        8,
        2,
        {"not_json": 2},
    )
    batch = {"log_date": hour.day, "log_hour": hour.hour, "file": "a.log", "damage": None}
    batches = [batch | account.of_lines(), batch | HourAccount().of_lines() | {"left_out_by_rule": None}]
    together = account_of(batches)
    assert (together.left_out, together.quarantined) == (account.left_out, account.quarantined)
    assert not together.duplicates_of.total()

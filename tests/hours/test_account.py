"""The account of a log hour, as it is changed by what does not read its files again."""

from __future__ import annotations

import os
from pathlib import Path

from include.landing import as_landed_files, landed_since
from include.storage import Entry, entries, entry_of
from spark_jobs.hours.account import listed_first, with_rewritten


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

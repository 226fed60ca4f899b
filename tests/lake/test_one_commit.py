"""Commits on a draft become one commit of the table; here without Delta, whose part ``test_co_partitioning.py`` has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from include.errors import ClickmillError
from spark_jobs.lake.one_commit import drafted, squashed


def _words(text: str) -> dict[str, Any]:
    return {"commitInfo": {"operation": text}}


def _add(path: str) -> dict[str, Any]:
    return {"add": {"path": path}}


def _remove(path: str) -> dict[str, Any]:
    return {"remove": {"path": path}}


def _metadata(buckets: int) -> dict[str, Any]:
    return {"metaData": {"configuration": {"clickmill.buckets": str(buckets)}}}


def test_newest_metadata_stays_and_a_file_that_comes_and_goes_leaves_nothing() -> None:
    commits = [
        [_words("first"), _metadata(8)],
        [_words("second"), _remove("old"), _add("passing")],
        [_words("third"), _metadata(16), _remove("passing"), _add("new"), {"txn": {"appId": "x"}}],
    ]
    found = squashed(commits)
    assert found[0] == _words("third")
    assert sorted(map(json.dumps, found)) == sorted(
        map(json.dumps, [_words("third"), _metadata(16), {"txn": {"appId": "x"}}, _remove("old"), _add("new")])
    )


def _table(folder: Path) -> Path:
    table = folder / "lake" / "counts"
    (table / "_delta_log").mkdir(parents=True)
    _write(table, 0, [_words("made"), _metadata(4), _add("old.parquet")])
    return table


def _write(table: Path, version: int, actions: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (table / "_delta_log" / f"{version:020d}.json").write_text(text, encoding="utf-8")


def _change(draft: Path) -> None:
    _write(draft, 1, [_words("set"), _metadata(8)])
    (draft / "day=a b").mkdir()
    (draft / "day=a b" / "new.parquet").write_bytes(b"rows")
    _write(draft, 2, [_words("write"), _remove("old.parquet"), _add("day=a%20b/new.parquet")])


def _change_and_fail(table: Path) -> None:
    with drafted(table) as draft:
        _change(draft)
        raise RuntimeError


def _change_beside_another(table: Path) -> None:
    with drafted(table) as draft:
        _change(draft)
        _write(table, 1, [_words("another's")])


def _files(table: Path) -> list[str]:
    return sorted(str(file.relative_to(table.parent)) for file in table.parent.rglob("*") if file.is_file())


def test_draft_becomes_one_commit_and_leaves_nothing_beside_the_table(tmp_path: Path) -> None:
    table = _table(tmp_path)
    before = _files(table)
    with drafted(table) as draft:
        _change(draft)
        assert [file for file in _files(table) if file.startswith("counts/")] == before
    assert [file for file in _files(table) if not file.startswith("counts/")] == []
    assert (table / "day=a b" / "new.parquet").read_bytes() == b"rows"
    lines = (table / "_delta_log" / f"{1:020d}.json").read_text(encoding="utf-8").splitlines()
    assert [*json.loads(lines[0])] == ["commitInfo"]
    assert {next(iter(json.loads(line))) for line in lines} == {"commitInfo", "metaData", "remove", "add"}


def test_table_is_as_it_was_when_a_change_fails_and_what_a_killed_one_left_is_removed(tmp_path: Path) -> None:
    table = _table(tmp_path)
    before = _files(table)
    (table.parent / ".counts-draft-killed" / "_delta_log").mkdir(parents=True)
    (table.parent / ".counts-draft-killed" / "rows.parquet").touch()
    with pytest.raises(RuntimeError):
        _change_and_fail(table)
    assert _files(table) == before


def test_another_writers_commit_is_never_replaced(tmp_path: Path) -> None:
    table = _table(tmp_path)
    with pytest.raises(ClickmillError, match="counts was changed by another writer meanwhile"):
        _change_beside_another(table)
    assert json.loads((table / "_delta_log" / f"{1:020d}.json").read_text(encoding="utf-8")) == _words("another's")

"""The table of benchmarks is made of what was recorded."""

from __future__ import annotations

import json

import pytest

from tests.benchmarks import figures


def test_the_page_holds_the_newest_figures():
    assert figures.PAGE.read_text(encoding="utf-8") == figures.page(), (
        "run: .venv/bin/python -m tests.benchmarks.figures"
    )


def test_a_recorded_figure_replaces_its_row_alone(tmp_path, monkeypatch):
    for name in ("PAGE", "FIGURES"):
        copied = tmp_path / getattr(figures, name).name
        copied.write_bytes(getattr(figures, name).read_bytes())
        monkeypatch.setattr(figures, name, copied)
    before = figures.PAGE.read_text(encoding="utf-8").splitlines()

    figures.record("small_hour", 10.04, 7.96, 16.0)
    figures.record("stream", 48_000.0)

    after = figures.PAGE.read_text(encoding="utf-8").splitlines()
    changed = [line for line in after if line not in before]
    assert len(after) == len(before)
    assert [line.split(" | ")[1:4] for line in changed] == [
        ["8 s", "10 s (7.96 to 16, 3 rounds)", "**1.25**"],
        ["at least 60,000 clicks/s", "48,000 clicks/s", "**1.25**"],
    ]
    assert json.loads(figures.FIGURES.read_text(encoding="utf-8"))["small_hour"]["values"] == [10.04, 7.96, 16.0]


@pytest.mark.parametrize("size", ["BENCH_CLICKS", "BENCH_SECONDS"])
def test_other_sizes_are_not_recorded(size, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "FIGURES", tmp_path / "none.json")
    monkeypatch.setenv(size, "1000")
    figures.record("small_hour", 1.0)
    assert not figures.FIGURES.exists()


def test_a_figure_of_no_known_work_is_refused():
    with pytest.raises(KeyError, match="no_such_work"):
        figures.record("no_such_work", 1.0)

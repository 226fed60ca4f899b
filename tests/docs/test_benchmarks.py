"""The table of benchmarks is made of what was recorded."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from benchmarks import figures
from benchmarks.backpressure import described
from benchmarks.backpressure_picture import Moment, draw


def test_the_page_holds_the_newest_figures():
    assert figures.PAGE.read_text(encoding="utf-8") == figures.page(), "run: .venv/bin/python -m benchmarks.figures"


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


def fallen_behind() -> list[Moment]:
    """90 s of 2,000 records a second, 1,000 of which are read, and 60 s in which the rest is."""
    load = [Moment(at, 2_000 * at, 1_000 * at, 2_000 + at // 30, True) for at in range(91)]
    return load + [Moment(90 + at, 180_000, 90_000 + 1_500 * at, 2_100, False) for at in range(1, 61)]


def test_rates_lag_and_memory_of_a_stream_that_fell_behind_are_told():
    text = described(fallen_behind())
    assert "2,000 clicks a second for 90 s, of which the stream reads 1,000: 2.0 times as many" in text
    assert "grows to 90,000 records, and is 0 after 60 s without production (1,500 a second)" in text
    assert text.endswith("2,000, 2,003 and 2,100 MiB.")


def test_the_picture_of_a_stream_that_fell_behind_has_four_lines_in_three_charts():
    svg = ElementTree.fromstring(draw(fallen_behind()))
    charts = svg.findall("{*}svg")
    lines = [
        len(group.findall(".//{*}path"))
        for chart in charts
        for group in chart.iter()
        if "series" in group.get("class", "").split()
    ]
    assert (len(charts), sum(lines)) == (3, 4)
    assert "after 90" in "".join(svg.itertext())
    assert not [node for node in svg.iter() if node.tag.endswith("script")]

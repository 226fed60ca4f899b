"""The clicks of the benchmark of very many are what it says that they are, and its picture can be read."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

from backports import zstd

from benchmarks.made_clicks import land_hours
from benchmarks.many_clicks import Day, draw
from include.hours import Hour
from include.landing import look_at
from include.settings import Settings
from include.sources import load_sources

START = Hour.parse("2026-03-01T00")


def test_lines_are_counted_as_a_reader_of_json_counts_them(tmp_path: Path) -> None:
    """An oracle that has nothing of ours: Python's JSON, a set of ids."""
    made = land_hours(tmp_path, START, [10_000, 10_000])
    assert "web" in load_sources(Settings.from_environment({}))
    counted, ids, broken, size = Counter[str](), set[str](), 0, 0
    for hour in (0, 1):
        landed = look_at(tmp_path, "web", START.plus(hour))
        assert landed.is_closed
        for file in landed.files:
            content = zstd.decompress(file.read_bytes())
            size += len(content)
            for line in content.decode().splitlines():
                try:
                    click = json.loads(line)
                except ValueError:
                    broken += 1
                    continue
                if click["event_id"] not in ids:
                    ids.add(click["event_id"])
                    counted[click["ts"][:13]] += 1
    assert made[0].clicks + made[1].clicks == counted
    assert (made[0].lines + made[1].lines, made[0].bytes + made[1].bytes, broken) == (20_000, size, 8)
    # 100 of an hour are sent twice, and 4 are broken; of the later hour 500 are late.
    assert counted == {"2026-03-01T00": 9_896 + 500, "2026-03-01T01": 9_896 - 500}


def test_an_hour_that_is_made_again_is_the_same(tmp_path: Path) -> None:
    contents = []
    for _ in range(2):
        land_hours(tmp_path, START, [1_000])
        contents.append([file.read_bytes() for file in look_at(tmp_path, "web", START).files])
    assert contents[0] == contents[1]


def test_the_picture_has_memory_and_disk_of_each_day() -> None:
    steps = dict.fromkeys(("make", "ingest", "aggregate", "validate", "publish", "remove"), 10.0)
    days = [Day(f"2026-03-{day:02d}", 6_000_000, steps, 300, 2_400 + day, day * 10**9) for day in range(1, 4)]
    assert days[0].clicks_per_second == 100_000
    svg = ElementTree.fromstring(draw(days))
    assert svg.attrib["aria-label"] == "Clicks a second, memory and disk over the clicks of a month"
    assert len(svg.findall(".//{*}path")) >= 4

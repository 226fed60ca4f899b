"""Advice on groupings: figures and recommendations worked out by hand, and what is shown of them."""

from __future__ import annotations

import io
import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from rich.console import Console

from expectations.facts import as_facts
from expectations.frames import grouping_frame
from include.counting import CountSettings
from include.documents.page import render_document
from include.documents.terminal import print_document
from include.uneven_load import recommended_salts, uneven_load_advice
from spark_jobs.grouping.advice import (
    Advice,
    GroupingLoad,
    KeyClicks,
    KeyDistribution,
    Measurement,
    Salting,
    advise,
    recommend,
    salted_clicks,
    salting,
)
from spark_jobs.grouping.advice_document import advice_document
from spark_jobs.grouping.advice_values import as_json, as_settings

HOSTILE = "http://x/\x1b[2J<script>alert(1)</script>[bold]"


def load(grouping: str, *rows: int, split: Salting | None = None) -> GroupingLoad:
    return GroupingLoad(grouping, f"{grouping}(url) over {len(rows)}", rows, 0, 0, split)


def distribution(
    busiest: Mapping[str | None, tuple[int, int]], by_bucket: dict[int, tuple[int, ...]], clicks: int = 800
) -> KeyDistribution:
    """``busiest`` has clicks and hash by key."""
    keys = tuple(KeyClicks(key, *values) for key, values in busiest.items())
    return KeyDistribution("url", clicks, 100, keys, by_bucket)


# The busiest has 31 % of 800 clicks and is in bucket 1 of 8; the other 552 are even: 69 a bucket.
HOT = distribution({"http://hot/": (248, 9), "http://a/": (20, 2)}, {8: (69, 317, 69, 69, 69, 69, 69, 69), 1: (800,)})
HOT_LOADS = [
    load("fields", 800),
    load("fields", 69, 317, 69, 69, 69, 69, 69, 69),
    load("salted_fields", 69, 131, 131, 131, 131, 69, 69, 69, split=Salting(4, ("http://hot/",))),
    load("shuffle", *[100] * 8),
]


def test_figures_of_a_load() -> None:
    uneven = load("fields", 0, 30, 10, 0)
    assert (uneven.instances, uneven.smallest, uneven.mean, uneven.largest) == (4, 0, 10.0, 30)
    assert (uneven.skew, uneven.idle) == (3.0, 2)
    assert uneven.speed_up == pytest.approx(40 / 30)


def test_hot_key_is_salted_by_the_fewest_that_make_the_load_even() -> None:
    # By 3 an instance has 69 + 248 / 3 = 151.7 clicks, above 1.5 * 100; by 4 it has 131.
    assert salting(HOT, 8, 8) == Salting(4, ("http://hot/",))
    assert salted_clicks(HOT, 8, HOT.busiest[:1], 4) == [69, 131, 131, 131, 131, 69, 69, 69]
    best = recommend(HOT, HOT_LOADS)
    assert (best.grouping, best.instances, best.salting) == ("salted_fields", 8, Salting(4, ("http://hot/",)))
    assert best.reason == (
        "the busiest URL has 31% of the clicks: above 3 instances fields grouping cannot help; salt it by 4"
    )
    assert best.speed_up == pytest.approx(800 / 131)


def test_salts_go_round_from_the_last_instance_to_the_first() -> None:
    last = distribution({"http://hot/": (300, -1)}, {4: (100, 100, 100, 500)})
    assert salted_clicks(last, 4, last.busiest, 3) == [200, 200, 100, 300]
    # Every key: each bucket is spread over itself and the next.
    assert salted_clicks(last, 4, [], 2) == [300, 100, 100, 300]


def test_next_busy_keys_are_split_when_the_hot_ones_are_not_enough() -> None:
    # a is hot (220 > 200); b, c are not, but share a bucket: without splitting b at least 180 + 170 remain there.
    busy = distribution({"a": (220, 0), "b": (180, 1), "c": (170, 1)}, {4: (220, 350, 115, 115)})
    split = salting(busy, 4, 4)
    assert split.hot_keys == ("a", "b")
    assert max(salted_clicks(busy, 4, busy.busiest[:2], split.salts)) <= 1.5 * 200


@pytest.mark.parametrize(
    "busiest",
    [
        {None: (700, 42), "a": (50, 1)},
        {f"k{n}": (66, n) for n in range(11)},
        {f"k{n}": (5, n) for n in range(16)},
    ],
    ids=["null", "too many", "none is hot"],
)
def test_every_key_is_split_when_the_hot_ones_cannot_be_named(busiest: dict[str | None, tuple[int, int]]) -> None:
    rows = (500,) + (20,) * 15
    assert salting(distribution(busiest, {16: rows}), 16, 16).hot_keys == ()


def test_salt_given_is_taken_as_far_as_there_are_instances() -> None:
    assert salting(HOT, 8, 8, 7).salts == 7
    assert salting(HOT, 1, 8, 7).salts == 1


def test_even_keys_are_kept_whole_over_most_instances() -> None:
    even = distribution({"a": (20, 0)}, {8: (100,) * 8})
    fields = [load("fields", 800), load("fields", 420, 380), load("fields", *[95] * 7, 135)]
    best = recommend(even, [*fields, load("shuffle", *[100] * 8)])
    assert (best.grouping, best.instances, best.salting) == ("fields", 8, None)
    assert "less than an even part of 8 instances" in best.reason


def test_range_is_recommended_before_a_merge() -> None:
    clumped = distribution({"a": (90, 0)}, {4: (500, 100, 100, 100)})
    loads = [load("shuffle", *[200] * 4), load("range", 180, 220, 190, 210), load("fields", 500, 100, 100, 100)]
    best = recommend(clumped, loads)
    assert best.grouping == "range"
    assert best.reason == (
        "no URL has more than an even part of 4 instances (the busiest has 11.2%), and fields grouping has skew 2.5: "
        "range has 1.1"
    )


def test_fastest_is_recommended_when_none_is_even() -> None:
    best = recommend(HOT, [load("fields", 800, 0), load("fields", 500, 300, 0, 0), load("fields", 600, 200, 0, 0)])
    assert best.speed_up == 1.6


def test_fifo_is_not_recommended_for_its_many_files() -> None:
    assert recommend(HOT, [*HOT_LOADS, load("fifo", *[8] * 100)]).instances == 8


def test_advice_names_hot_keys_and_what_suits_this_spark() -> None:
    advice = advise(HOT, "web", "2026-03-01T05", HOT_LOADS, cores=2)
    assert [key.key for key in advice.hot_keys] == ["http://hot/"]
    assert advice.here is not None
    assert advice.here.instances == 1
    assert advise(HOT, "web", "2026-03-01T05", HOT_LOADS, cores=8).here is None


def test_salts_grow_with_instances_and_share() -> None:
    assert [recommended_salts(n, 0.31) for n in (1, 2, 4, 8, 16)] == [1, 2, 2, 4, 7]
    assert recommended_salts(8, 1.0) == 6


def test_warning_says_what_to_do() -> None:
    run = {"measured_at": datetime(2026, 3, 1, tzinfo=UTC), "operator": "count_by_url", "log_hours": "h",
           "grouping": "fields(url) over 8", "instances": 8}  # fmt: skip
    busy = {"instance_id": 0, "rows": 317, "busiest_key": HOSTILE, "busiest_key_share": 248 / 317}
    others = [{"instance_id": n, "rows": 69, "busiest_key": "a", "busiest_key_share": 20 / 69} for n in range(1, 8)]
    (row,) = grouping_frame(as_facts({"groupings": [run | load for load in (busy, *others)]})).to_dict("records")
    assert row["skew"] == pytest.approx(3.17)
    assert row["uneven_load"].endswith(
        "alone has 31% of the clicks: above 3 instances fields grouping cannot help; salt it by 4"
    )
    assert "\x1b" not in row["uneven_load"]
    assert "choose another number of instances" in uneven_load_advice("fields(url) over 8", 8, "a", 0.1)


def test_settings_are_what_the_configuration_takes() -> None:
    hot = replace(recommend(HOT, HOT_LOADS), salting=Salting(4, (HOSTILE, 'q"\\\U0001f600')))
    read = tomllib.loads(as_settings("url", hot))
    settings = CountSettings.model_validate(read["counts"]["url"])
    assert settings.hot_keys == (HOSTILE, 'q"\\\U0001f600')
    assert (settings.grouping, settings.instances, settings.salts) == ("salted_fields", 8, 4)


def hostile_advice() -> Advice:
    keys = distribution({HOSTILE: (248, 9)}, {8: HOT.by_bucket[8]})
    loads = [replace(hot_load, salting=hot_load.salting and Salting(4, (HOSTILE,))) for hot_load in HOT_LOADS]
    measured = Measurement("custom(<b>) over 2", 2, 800, 0.5, 1.9, 1.5, (1000.0, None))
    return replace(advise(keys, "web", "2026-03-01T05", loads, cores=2), measurements=(measured,))


def test_terminal_shows_whole_numbers_and_texts_without_power() -> None:
    console = Console(file=io.StringIO(), width=60, no_color=True)
    print_document(console, advice_document(hostile_advice()))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert ["salted_fields", "by", "4", "69", "131", "1.31", "0", "0", "0", "6.1"] in [
        line.split() for line in shown.splitlines()
    ]
    assert "\x1b" not in shown
    assert "1,600" in shown, "clicks per second"


def test_page_shows_texts_without_power_and_nothing_from_elsewhere() -> None:
    page = render_document(advice_document(hostile_advice()))
    assert "<script" not in page
    assert "\x1b" not in page
    assert "custom(&lt;b&gt;) over 2" in page
    assert "pygal" not in page.lower()
    assert page.count('class="chart bars"') == 4, "speed-up over 8 instances, and the clicks of each for 3 groupings"
    assert "shuffle: 8</title>" in page
    assert "1: 317</title>" in page


def test_json_is_plain() -> None:
    advice = json.loads(json.dumps(as_json(hostile_advice())))
    assert advice["hot_keys"] == [{"key": HOSTILE, "clicks": 248, "share": 0.31, "fields_limit": 3}]
    salted = next(entry for entry in advice["groupings"] if entry["grouping"] == "salted_fields")
    assert (salted["salts"], salted["salted_keys"], salted["largest"], salted["skew"]) == (4, [HOSTILE], 131, 1.31)
    assert advice["recommendation"]["salts"] == 4
    assert advice["measured"][0]["rows_per_second"] == [1000.0, None]

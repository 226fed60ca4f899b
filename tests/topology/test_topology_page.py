"""The page shows every query and cut, escapes what it shows, and needs nothing from elsewhere."""

from __future__ import annotations

import re
from dataclasses import replace

from include.documents.page import render_document
from spark_jobs.topology.model import (
    BROADCAST,
    SHUFFLE,
    Cut,
    JobTopology,
    QueryTopology,
    SubTopology,
    as_json,
    describe,
)
from spark_jobs.topology.topology_page import draw, topology_document

EVIL = "<script>alert('x')</script>"
QUERY = QueryTopology(
    f"write {EVIL}",
    (
        SubTopology(0, ("table clicks",), ("filter", f"partial aggregate by {EVIL}"), ("shuffle 0",), 8),
        SubTopology(1, ("rows of the job",), (), ("broadcast 1",), 1),
        SubTopology(2, ("shuffle 0", "broadcast 1"), ("aggregate by url",), ("table clicks_by_url_hourly",), 4),
    ),
    (
        Cut(0, SHUFFLE, "aggregate", "hash", ("url", EVIL), 4, True, 0, (2,), ("coalesced to 1",), 1234, 5_000_000),
        Cut(1, BROADCAST, "join", BROADCAST, (), None, False, 1, (2,), (), 7, 300),
    ),
    (f"the shuffle by {EVIL} is needless",),
)
JOB = JobTopology("aggregate_clicks", (QUERY,))


def test_the_page_escapes_and_asks_no_other_host() -> None:
    page = render_document(topology_document([JOB], f"log hours {EVIL}", workers=2, cores=2))
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert not re.search(r"(src|href)\s*=|https?://|@import|url\(", page)
    assert page == render_document(topology_document([JOB], f"log hours {EVIL}", workers=2, cores=2))
    for shown in (
        "Sub-topology 0 · 8 tasks",
        "shuffle 0",
        "read coalesced to 1",
        "1,234 rows, 5.0 MB",
        "\n    w1 core 0: 0_0",
        "the shuffle by &lt;script&gt;",
    ):
        assert shown in page


def test_boxes_do_not_overlap_and_readers_are_right_of_writers() -> None:
    picture = draw(QUERY)
    for number, box in enumerate(picture.boxes):
        assert 0 <= box.x <= box.x + box.width <= picture.width
        assert 0 <= box.y <= box.y + box.height <= picture.height
        for other in picture.boxes[:number]:
            beside = box.x >= other.x + other.width or other.x >= box.x + box.width
            assert beside or box.y >= other.y + other.height or other.y >= box.y + box.height
    first, second, last = picture.boxes
    assert first.x == second.x < last.x
    assert [arrow.kind for arrow in picture.arrows] == [SHUFFLE, BROADCAST]


def test_the_text_says_what_crosses_and_which_core_runs_which_task() -> None:
    text = describe(JOB, workers=2, cores=3)
    crossed = f"hash of url, {EVIL} into 4; read coalesced to 1; 1,234 rows, 5.0 MB"
    assert f"shuffle 0\n      --> sub-topology 2: aggregate: {crossed}\n" in text
    assert "Sub-topology: 0 (8 tasks, 0_0 to 0_7)" in text
    assert "idle in sub-topology 1: w1 core 0, w1 core 2, w2 core 0, w2 core 1, w2 core 2" in text


def test_json_has_every_task_on_a_core_and_what_moves() -> None:
    (query,) = as_json(JOB, workers=2, cores=2)["queries"]
    assignment = query["assignment"]
    assert sorted(task for tasks in assignment["cores"].values() for task in tasks) == sorted(query["tasks"])
    assert set(assignment["moves"]) == {"w3 added", "w1 lost", "w2 lost"}
    assert len(assignment["idle"][1]) == 3


def test_what_executors_ran_is_said_in_place_of_a_simulation() -> None:
    query = JOB.queries[0]
    parts = [replace(part, executors=("executor 0 on a", "executor 1 on b") * 9) for part in query.sub_topologies]
    ran = replace(JOB, queries=(replace(query, sub_topologies=tuple(parts)),))
    text = describe(ran, workers=2, cores=2)
    assert "Placement: tasks by the executors that ran them:\n    executor 0 on a: 0_0 0_2 0_4 0_6 1_0" in text
    assert "Simulation" not in text
    (entry,) = as_json(ran, workers=2, cores=2)["queries"]
    assert sorted(task for tasks in entry["placement"].values() for task in tasks) == sorted(entry["tasks"])
    assert entry["assignment"] is None

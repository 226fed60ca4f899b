from __future__ import annotations

import json
import math
from typing import Any

from expectations.metrics import click_hour_frame, facts_by_subject, log_hour_frame
from include.buckets import NOT_STATED, PARTITIONER, Layout
from include.log_hours import Hour

LAYOUTS = {"url": Layout("4", PARTITIONER, "STRING"), "country": Layout("8", NOT_STATED, "INT")}
FIVE, SIX = Hour.parse("2026-03-01T05"), Hour.parse("2026-03-01T06")


def _log_hour(hour: int, source: str = "web") -> dict[str, Any]:
    return {"source": source, "log_date": "2026-03-01", "log_hour": hour}


def _click_hour(hour: int) -> dict[str, Any]:
    return {"click_date": "2026-03-01", "click_hour": hour}


def _account(hour: int, **counts: Any) -> dict[str, Any]:
    return {
        **_log_hour(hour),
        "lines": 0,
        "accepted": 0,
        "duplicates": 0,
        "is_closed": True,
        "damaged_files": [],
        **counts,
    }


FACTS = facts_by_subject(
    (subject, json.dumps(fact))
    for subject, fact in [
        (
            "accounting",
            _account(5, lines=10, accepted=6, duplicates=1, is_closed=False, damaged_files=["a.gz", "b.gz"]),
        ),
        ("accounting", _account(6)),
        ("clicks", {**_log_hour(5), **_click_hour(4), "clicks": 2, "null_keys": 1, "unknown_country_clicks": 1}),
        ("clicks", {**_log_hour(5), **_click_hour(5), "clicks": 4, "null_keys": 2, "unknown_country_clicks": 2}),
        ("clicks", {**_log_hour(5, "other"), **_click_hour(5), "clicks": 100}),
        ("quarantined", {**_log_hour(5), "quarantined_lines": 3}),
        ("duplicate_ids", {"source": "web", "hour_number": FIVE.number, "duplicate_event_ids": 7}),
        ("duplicate_ids", {"source": "other", "hour_number": SIX.number, "duplicate_event_ids": 9}),
        ("by_url", {**_click_hour(5), "clicks": 104, "rows": 3, "keys": 2, "smallest_count": 4, "largest_count": 78}),
        (
            "by_country",
            {**_click_hour(5), "clicks": 103, "rows": 1, "keys": 1, "smallest_count": 103, "misplaced_rows": 1},
        ),
    ]
)


def test_log_hour_is_put_together_from_its_own_facts() -> None:
    five, six = log_hour_frame(FACTS).to_dict("records")
    assert five == {
        "partition": "web 2026-03-01T05",
        "lines": 10,
        "accounted_lines": 6 + 1 + 3,
        "accepted": 6,
        "stored_clicks": 6,
        "duplicate_event_ids": 7,
        "null_keys": 3,
        "invalid_country_codes": 0,
        "quarantined_share": 0.3,
        "unknown_country_share": 0.5,
        "files_not_closed_or_damaged": 3,
    }
    assert six == {"partition": "web 2026-03-01T06"} | {name: 0 for name in five if name != "partition"}


def test_click_hour_is_put_together_from_all_sources() -> None:
    five, six = click_hour_frame([FIVE, SIX], FACTS, LAYOUTS).to_dict("records")
    assert (five["partition"], five["clicks"], five["clicks_by_url"], five["clicks_by_country"]) == (
        "2026-03-01T05", 104, 104, 103,
    )  # fmt: skip
    assert (five["url_rows"], five["url_keys"], five["smallest_url_count"]) == (3, 2, 4)
    assert (five["misplaced_url_rows"], five["misplaced_country_rows"]) == (0, 1)
    assert (five["url_buckets"], five["country_buckets"], five["top_url_share"]) == (4, 8, 0.75)
    assert (five["url_partitioner"], five["url_key_type"]) == (PARTITIONER, "STRING")
    assert (five["country_partitioner"], five["country_key_type"]) == (NOT_STATED, "INT")
    assert (six["clicks"], six["url_rows"], six["top_url_share"]) == (0, 0, 0.0)
    assert math.isnan(six["smallest_url_count"]), "an hour without rows has no smallest count"


def test_nothing_measured_gives_empty_frames() -> None:
    nothing = facts_by_subject([])
    assert log_hour_frame(nothing).empty
    assert click_hour_frame([], nothing, LAYOUTS).empty

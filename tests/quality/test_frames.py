from __future__ import annotations

import json
import math
from typing import Any

from expectations.frames import click_hour_frame, facts_by_subject, log_hour_frame
from expectations.suites import click_hour_checks, log_hour_checks
from include.buckets import Layout
from include.check_settings import ConfiguredCheck
from include.log_hours import Hour
from include.settings import PipelineSettings
from include.sources import JsonFields, Source
from include.tables import CLICKS_BY_COUNTRY_HOURLY, CLICKS_BY_URL_HOURLY

LAYOUTS = {
    "url": (CLICKS_BY_URL_HOURLY, Layout(4, 4, "STRING")),
    "country": (CLICKS_BY_COUNTRY_HOURLY, Layout(4, 8, "INT")),
}
FIVE, SIX, SEVEN = (Hour.parse(f"2026-03-01T0{hour}") for hour in (5, 6, 7))
WEB = Source(name="web", format="json", fields=JsonFields(time="ts", url="url"))
NO_REFERRER = ConfiguredCheck(name="x", metric="null_share", column="referrer", highest=0.5, reason="why")
SETTINGS = PipelineSettings(checks=(NO_REFERRER,))
CHECKS, OF_CLICK_HOURS = log_hour_checks(SETTINGS, WEB), click_hour_checks(SETTINGS)
MINUTE = 60_000_000


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
        "out_of_order": 0,
        "files": 0,
        "bytes": 0,
        "is_closed": True,
        "damaged_files": [],
        "unread_files": [],
        **counts,
    }


def _times(first: int, last: int) -> dict[str, Any]:
    """Minutes after 05:00."""
    start = FIVE.number * 60
    return {"first_clicked_micros": (start + first) * MINUTE, "last_clicked_micros": (start + last) * MINUTE}


FACTS = facts_by_subject(
    (subject, json.dumps(fact))
    for subject, fact in [
        (
            "accounting",
            _account(
                5, lines=10, accepted=6, duplicates=1, out_of_order=3, files=2, bytes=7, is_closed=False,
                damaged_files=["a.gz", "b.gz"], unread_files=["part.log"],
            ),
        ),
        ("accounting", _account(6)),
        (
            "clicks",
            {
                **_log_hour(5), **_click_hour(4), "clicks": 2, "null_keys": 1, "unknown_country_share": 1,
                "ids_that_are_none": 4, "null_share(referrer)": 2, **_times(-90, -10),
            },
        ),
        (
            "clicks",
            {
                **_log_hour(5), **_click_hour(5), "clicks": 4, "null_keys": 2, "unknown_country_share": 2,
                **_times(0, 59),
            },
        ),
        ("clicks", {**_log_hour(5, "other"), **_click_hour(5), "clicks": 100, **_times(0, 59)}),
        ("quarantined", {**_log_hour(5), "reason": "not_json", "quarantined_lines": 2}),
        ("quarantined", {**_log_hour(5), "reason": "bad_url", "quarantined_lines": 1}),
        ("duplicates", {**_log_hour(5), "duplicates": 8}),
        ("duplicates", {**_log_hour(5, "other"), "duplicates": 9}),
        ("duplicate_ids", {"source": "web", "hour_number": FIVE.number, "duplicate_event_ids": 7}),
        ("duplicate_ids", {"source": "other", "hour_number": SIX.number, "duplicate_event_ids": 9}),
        (
            "by_url",
            {
                **_click_hour(5), "clicks": 104, "rows": 3, "keys": 2, "smallest_count": 4, "largest_count": 78,
                "rows_hash": 5, "counted_micros": 100,
            },
        ),
        ("published_by_url", {**_click_hour(5), "clicks": 104, "rows": 3, "rows_hash": 6}),
        (
            "by_country",
            {**_click_hour(5), "clicks": 103, "rows": 1, "keys": 1, "smallest_count": 103, "misplaced_country_rows": 1},
        ),
        ("files", {"table": "clicks", **_log_hour(5), "files": 2, "lost": ["x.parquet"]}),
        ("files", {"table": "clicks_by_url_hourly", **_click_hour(5), "files": 4, "lost": []}),
        ("other_types", {"column": "status", "type": "BIGINT"}),
        ("publications", {"hour": "2026-03-01T05", "published_micros": 101}),
    ]
)  # fmt: skip


def test_log_hour_is_put_together_from_its_own_facts() -> None:
    five, six = log_hour_frame(WEB, [FIVE, SIX], FACTS, CHECKS).to_dict("records")
    shares = {name: value for name, value in five.items() if name.endswith("_share") and value}
    assert shares == {
        "duplicate_share": 0.1,
        "quarantined_share": 0.3,
        "quarantined_not_json_share": 0.2,
        "quarantined_bad_url_share": 0.1,
        "late_share": 2 / 6,
        "out_of_order_share": 0.5,
        "unknown_country_share": 0.5,
    }
    assert {name: value for name, value in five.items() if not name.endswith("_share")} == {
        "partition": "web 2026-03-01T05",
        "source": "web",
        "hour": "2026-03-01T05",
        "is_missing": 0,
        "presence": "10 lines in 2 files",
        "files_not_closed_or_damaged": 3,
        "damage": "not closed by _SUCCESS, a.gz breaks off, b.gz breaks off",
        "files_not_read": 1,
        "unread": "part.log",
        "lines": 10,
        "accounted_lines": 6 + 1 + 3,
        "accepted": 6,
        "stored_clicks": 6,
        "duplicates": 1,
        "stored_duplicates": 8,
        "files": 2,
        "bytes": 7,
        "null_keys": 3,
        "invalid_country_codes": 0,
        "malformed_urls": 0,
        "ids_that_are_none": 4,
        "oldest_click_hours_before": 1.5,
        "newest_click_minutes_after": -1,
        # 03:30 is not in click hour 04.
        "click_hours_not_of_their_times": 1,
        "null_share(referrer)": 2 / 6,
        "duplicate_event_ids": 7,
        "columns_of_other_types": 1,
        "other_types": "status is BIGINT",
        "clicks_files": 2,
        "lost_clicks_files": 1,
        "lost_clicks_file_names": "x.parquet",
        "quarantined_files": 0,
        "lost_quarantined_files": 0,
        "lost_quarantined_file_names": "",
    }
    assert (six["partition"], six["lines"]) == ("web 2026-03-01T06", 0)
    assert math.isnan(six["late_share"]), "of no clicks there is no share"
    assert math.isnan(six["oldest_click_hours_before"]), "without clicks there is no oldest one"


def test_missing_hours_are_reported_from_empty_ones() -> None:
    accounts = (_account(5), _account(6, is_closed=False), _account(8, is_closed=False, files=1))
    facts = facts_by_subject(
        [("unfinished", '{"log_hour": "web 2026-03-01T09"}')]
        + [("accounting", json.dumps(account)) for account in accounts]
    )
    rows = log_hour_frame(WEB, [FIVE, SIX, SEVEN, SEVEN.plus(1), SEVEN.plus(2)], facts, CHECKS).to_dict("records")
    assert [(row["is_missing"], row["files_not_closed_or_damaged"], row["presence"]) for row in rows[:2]] == [
        (0, 0, "it is empty: closed by _SUCCESS, without a line"),
        (1, 0, "nothing had landed, not even _SUCCESS, when its grace time was over"),
    ]
    assert (rows[2]["is_missing"], rows[2]["presence"]) == (1, "it was never ingested")
    assert math.isnan(rows[2]["lines"])
    assert (rows[3]["is_missing"], rows[3]["files_not_closed_or_damaged"]) == (0, 1)
    assert (rows[4]["is_missing"], rows[4]["presence"]) == (1, "its ingest has not ended")


def test_click_hour_is_put_together_from_all_sources() -> None:
    five, six = click_hour_frame([FIVE, SIX], FACTS, LAYOUTS, OF_CLICK_HOURS).to_dict("records")
    assert (five["partition"], five["clicks"], five["clicks_by_url"], five["clicks_by_country"]) == (
        "2026-03-01T05", 104, 104, 103,
    )  # fmt: skip
    assert (five["url_rows"], five["url_keys"], five["smallest_url_count"]) == (3, 2, 4)
    assert (five["misplaced_url_rows"], five["misplaced_country_rows"]) == (0, 1)
    assert (five["url_fewest_buckets"], five["url_most_buckets"], five["top_url_share"]) == (4, 4, 0.75)
    assert (five["country_fewest_buckets"], five["country_most_buckets"]) == (4, 8)
    assert (five["url_key_type"], five["country_key_type"]) == ("STRING", "INT")
    assert (five["url_files"], five["lost_url_files"], five["country_files"]) == (4, 0, 0)
    assert (six["clicks"], six["url_rows"]) == (0, 0)
    assert math.isnan(six["top_url_share"])
    assert math.isnan(six["smallest_url_count"]), "an hour without rows has no smallest count"


def test_published_rows_are_compared_only_when_published_since_counted() -> None:
    five, six = click_hour_frame([FIVE, SIX], FACTS, LAYOUTS, OF_CLICK_HOURS).to_dict("records")
    assert five["published_url_differs"] == 1
    assert five["published_url"] == "published 3 rows with 104 clicks, computed 3 rows with 104 clicks"
    counted_since = dict(FACTS) | {"publications": [{"hour": "2026-03-01T05", "published_micros": 100}]}
    never_published = dict(FACTS) | {"publications": []}
    for facts in (counted_since, never_published):
        assert click_hour_frame([FIVE], facts, LAYOUTS, OF_CLICK_HOURS)["published_url_differs"].isna().all()
    assert math.isnan(six["published_url_differs"])


def test_nothing_measured_gives_empty_frames() -> None:
    nothing = facts_by_subject([])
    assert log_hour_frame(WEB, [], nothing, CHECKS).empty
    assert click_hour_frame([], nothing, LAYOUTS, OF_CLICK_HOURS).empty

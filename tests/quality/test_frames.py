from __future__ import annotations

import math
from datetime import UTC, date, datetime
from typing import Any

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from expectations.facts import as_facts
from expectations.frames import click_hour_frame, grouping_frame, log_hour_frame
from expectations.suites import click_hour_checks, log_hour_checks
from include.buckets import Layout
from include.check_settings import ConfiguredCheck
from include.hours import Hour
from include.settings import PipelineSettings
from include.source_fields import LineFields
from include.sources import LandedFiles, Source
from include.tables import CLICKS_BY_COUNTRY_HOURLY, CLICKS_BY_URL_HOURLY

LAYOUTS = {
    "url": (CLICKS_BY_URL_HOURLY, Layout(4, 4, "STRING")),
    "country": (CLICKS_BY_COUNTRY_HOURLY, Layout(4, 8, "INT")),
}
FIVE, SIX, SEVEN = (Hour.parse(f"2026-03-01T0{hour}") for hour in (5, 6, 7))
WEB = Source(name="web", format="json", fields=LineFields(time="ts", url="url"))
NO_REFERRER = ConfiguredCheck(name="x", metric="null_share", column="referrer", highest=0.5, reason="why")
SETTINGS = PipelineSettings(checks=(NO_REFERRER,))
CHECKS, OF_CLICK_HOURS = log_hour_checks(SETTINGS, WEB), click_hour_checks(SETTINGS)
MINUTE = 60_000_000


def _log_hour(hour: int, source: str = "web") -> dict[str, Any]:
    return {"source": source, "log_date": date(2026, 3, 1), "log_hour": hour}


def _click_hour(hour: int) -> dict[str, Any]:
    return {"click_date": date(2026, 3, 1), "click_hour": hour}


def _account(hour: int, source: str = "web", **counts: Any) -> dict[str, Any]:
    return {
        **_log_hour(hour, source),
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


MEASURED: dict[str, list[dict[str, Any]]] = {
    "accounting": [
        _account(
            5, lines=25, accepted=6, duplicates=1, left_out=15, out_of_order=3, files=2, bytes=7, is_closed=False,
            damaged_files=["a.gz", "b.gz"], unread_files=["part.log"],
        ),
        _account(6),
    ],
    "clicks": [
        {
            **_log_hour(5), **_click_hour(4), "clicks": 2, **_times(-90, -10),
            "counted": {"null_keys": 1, "unknown_country_share": 1, "ids_that_are_none": 4, "null_share(referrer)": 2},
        },
        {
            **_log_hour(5), **_click_hour(5), "clicks": 4, **_times(0, 59),
            "counted": {"null_keys": 2, "unknown_country_share": 2},
        },
        {**_log_hour(5, "other"), **_click_hour(5), "clicks": 100, **_times(0, 59)},
    ],
    "urls": [
        # An estimate, that may be above the clicks.
        {**_log_hour(5), "distinct_urls": 7, "because": "because of the parameter session"},
        {**_log_hour(6, "other"), "distinct_urls": 9},
    ],
    "quarantined": [
        {**_log_hour(5), "reason": "not_json", "quarantined_lines": 2},
        {**_log_hour(5), "reason": "bad_url", "quarantined_lines": 1},
    ],
    "duplicates": [{**_log_hour(5), "duplicates": 8}, {**_log_hour(5, "other"), "duplicates": 9}],
    "duplicate_ids": [
        {"source": "web", "hour_number": FIVE.number, "duplicate_event_ids": 7},
        {"source": "other", "hour_number": SIX.number, "duplicate_event_ids": 9},
    ],
    "counts": [
        {
            "key": "url", **_click_hour(5), "clicks": 104, "rows": 3, "keys": 2, "smallest_count": 4,
            "largest_count": 78, "rows_hash": 5, "counted_micros": 100,
        },
        {
            "key": "country", **_click_hour(5), "clicks": 103, "rows": 1, "keys": 1, "smallest_count": 103,
            "counted": {"misplaced_country_rows": 1},
        },
    ],
    "published": [{"key": "url", **_click_hour(5), "clicks": 104, "rows": 3, "rows_hash": 6}],
    "publications": [{**_click_hour(5), "published_micros": 101}],
    "files": [
        {"table_name": "clicks", **_log_hour(5), "files": 2, "lost": ["x.parquet"]},
        {"table_name": "clicks_by_url_hourly", **_click_hour(5), "files": 4, "lost": []},
    ],
    "other_types": [{"column_name": "status", "stored_type": "BIGINT"}],
}  # fmt: skip
FACTS = as_facts(MEASURED)


def test_log_hour_is_put_together_from_its_own_facts() -> None:
    five, six = log_hour_frame(WEB, [FIVE, SIX], FACTS, CHECKS).to_dict("records")
    counted = {check.rows.name for check in CHECKS if check.rows and check.rows.counted and not check.rows.as_share}
    assert {name: five.pop(name) for name in counted} == dict.fromkeys(counted, 0) | {
        "null_keys": 3,
        "ids_that_are_none": 4,
    }
    shares = {name: value for name, value in five.items() if name.endswith("_share") and value}
    assert shares == {
        "duplicate_share": 0.1,
        "quarantined_share": 0.3,
        "quarantined_not_json_share": 0.2,
        "quarantined_bad_url_share": 0.1,
        "left_out_share": 0.6,
        "late_share": 2 / 6,
        "out_of_order_share": 0.5,
        "unknown_country_share": 0.5,
        "distinct_url_share": 1,
    }
    assert {name: value for name, value in five.items() if not name.endswith("_share")} == {
        "partition": "web 2026-03-01T05",
        "source": "web",
        "hour": "2026-03-01T05",
        "is_missing": 0,
        "presence": "25 lines in 2 files",
        "because": "because of the parameter session",
        "files_not_closed_or_damaged": 3,
        "damage": "not closed by _SUCCESS, a.gz breaks off, b.gz breaks off",
        "files_not_read": 1,
        "unread": "part.log",
        "lines": 25,
        "accounted_lines": 6 + 1 + 3 + 15,
        "accepted": 6,
        "stored_clicks": 6,
        "duplicates": 1,
        "stored_duplicates": 8,
        "files": 2,
        "bytes": 7,
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
    facts = as_facts({"unfinished": [_log_hour(9)], "accounting": accounts})
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
    counted_since = as_facts(MEASURED | {"publications": [{**_click_hour(5), "published_micros": 100}]})
    never_published = as_facts(MEASURED | {"publications": []})
    for facts in (counted_since, never_published):
        assert click_hour_frame([FIVE], facts, LAYOUTS, OF_CLICK_HOURS)["published_url_differs"].isna().all()
    assert math.isnan(six["published_url_differs"])


def test_what_is_published_of_few_visitors_is_compared_with_what_is_to_be_published() -> None:
    of_key = {"key": "url", **_click_hour(5), "clicks": 104, "rows": 3, "rows_hash": 6}
    publishable = MEASURED | {"publishable": [of_key]}
    five = click_hour_frame([FIVE], as_facts(publishable), LAYOUTS, OF_CLICK_HOURS).to_dict("records")[0]
    assert five["published_url_differs"] == 0, "though other rows were counted"
    of_another_hour = MEASURED | {"publishable": [of_key | _click_hour(6)]}
    five = click_hour_frame([FIVE], as_facts(of_another_hour), LAYOUTS, OF_CLICK_HOURS).to_dict("records")[0]
    assert five["published_url"] == "published 3 rows with 104 clicks, computed 0 rows with 0 clicks"


def test_log_hours_of_a_stream_that_are_open_are_left_out() -> None:
    facts = as_facts(MEASURED | {"open_log_hours": [_log_hour(5, "other")]})
    assert click_hour_frame([FIVE], facts, LAYOUTS, OF_CLICK_HOURS)["clicks"].to_list() == [4]
    facts = as_facts(MEASURED | {"open_log_hours": [_log_hour(5)]})
    assert log_hour_frame(WEB, [FIVE], facts, CHECKS)["stored_clicks"].to_list() == [0]


def test_duplicates_of_a_stream_are_in_no_table() -> None:
    streamed = WEB.model_copy(update={"files": LandedFiles()})
    assert log_hour_frame(streamed, [FIVE], FACTS, CHECKS)["stored_duplicates"].to_list() == [1]


def test_five_names_are_listed_and_the_others_counted() -> None:
    lost = [f"{number}.parquet" for number in range(7)]
    files = [{"table_name": "clicks", **_log_hour(5), "files": 9, "lost": lost}]
    (row,) = log_hour_frame(WEB, [FIVE], as_facts(MEASURED | {"files": files}), CHECKS).to_dict("records")
    assert row["lost_clicks_file_names"] == "0.parquet, 1.parquet, 2.parquet, 3.parquet, 4.parquet and 2 more"


def test_patterns_that_differ_in_case_alone_are_two_numbers() -> None:
    upper, lower = (
        ConfiguredCheck(name=name, metric="matching_share", column="url", pattern=pattern, highest=1, reason="why")
        for name, pattern in (("upper", "^A'\"{}$"), ("lower", "^a'\"{}$"))
    )
    clicks = {**_log_hour(5), **_click_hour(5), "clicks": 4, "counted": {upper.measured: 1, lower.measured: 2}}
    checks = log_hour_checks(PipelineSettings(checks=(upper, lower)), WEB)
    (row,) = log_hour_frame(WEB, [FIVE], as_facts(MEASURED | {"clicks": [clicks]}), checks).to_dict("records")
    assert (row[upper.measured], row[lower.measured]) == (0.25, 0.5)


def _load(operator: str, run: int, instance: int, rows: int, grouping: str = "fields(url) over 2") -> dict[str, Any]:
    return {
        "measured_at": datetime(2026, 3, 2, run, tzinfo=UTC), "operator": operator, "instances": 2,
        "log_hours": "2026-03-01T05..2026-03-01T09 (2 of them)", "grouping": grouping, "instance_id": instance,
        "rows": rows, "busiest_key": f"key {instance}", "busiest_key_share": 0.5,
    }  # fmt: skip


def test_the_load_is_that_of_the_newest_run_and_of_what_does_not_combine() -> None:
    loads = [
        *(_load("count_by_url", 1, instance, 500) for instance in (0, 1)),
        *(_load("count_by_url", 2, instance, rows) for instance, rows in enumerate((10, 30))),
        _load("count_by_country", 2, 0, 10, grouping="combine(country_code)"),
    ]
    (row,) = grouping_frame(as_facts({"groupings": loads})).to_dict("records")
    assert (row["partition"], row["hour"], row["skew"]) == (
        "count_by_url 2026-03-01T05..2026-03-01T09 (2 of them)", "2026-03-01T05..2026-03-01T09", 1.5,
    )  # fmt: skip
    assert "'key 1', has 38% of the clicks" in row["uneven_load"]


LOG_HOURS = st.tuples(st.sampled_from(["web", "other"]), st.sampled_from([5, 6, 7]))
CLICK_HOURS = st.none() | st.sampled_from([4, 5, 6, 7])
NUMBERS = st.integers(0, 10**12)


@settings(deadline=None, max_examples=30)
@given(
    accounts=st.dictionaries(LOG_HOURS, NUMBERS),
    clicks=st.dictionaries(st.tuples(LOG_HOURS, CLICK_HOURS), st.tuples(NUMBERS, NUMBERS)),
    lines=st.dictionaries(st.tuples(LOG_HOURS, st.sampled_from(["blank", "bad_url"])), NUMBERS),
)
def test_drawn_facts_are_added_up_as_a_plain_oracle_adds_them_up(
    accounts: dict[tuple[str, int], int],
    clicks: dict[tuple[tuple[str, int], int | None], tuple[int, int]],
    lines: dict[tuple[tuple[str, int], str], int],
) -> None:
    facts = as_facts(
        {
            "accounting": [_account(hour, source, lines=read, accepted=1) for (source, hour), read in accounts.items()],
            "clicks": [
                _log_hour(hour, source)
                | ({} if click_hour is None else _click_hour(click_hour))
                | {"clicks": number, "counted": {"null_keys": null_keys}}
                for ((source, hour), click_hour), (number, null_keys) in clicks.items()
            ],
            "quarantined": [
                _log_hour(hour, source) | {"reason": reason, "quarantined_lines": number}
                for ((source, hour), reason), number in lines.items()
            ],
        }
    )
    for row, hour in zip(
        log_hour_frame(WEB, [FIVE, SIX, SEVEN], facts, CHECKS).to_dict("records"), (5, 6, 7), strict=True
    ):
        if ("web", hour) not in accounts:
            assert row["is_missing"] == 1
            assert {name for name, value in row.items() if not pd.isna(value)} == {
                "partition", "source", "hour", "is_missing", "presence",
            }  # fmt: skip
            continue
        stored = {of: number for (log_hour, of), number in clicks.items() if log_hour == ("web", hour)}
        total = sum(number for number, _ in stored.values())
        late = sum(number for of, (number, _) in stored.items() if of is not None and of < hour)
        refused = {reason: number for (log_hour, reason), number in lines.items() if log_hour == ("web", hour)}
        read = accounts["web", hour]
        assert (row["stored_clicks"], row["null_keys"]) == (total, sum(null for _, null in stored.values()))
        assert row["accounted_lines"] == total + sum(refused.values())
        assert _null_as_none(row["late_share"]) == (late / total if total else None)
        assert _null_as_none(row["quarantined_share"]) == (sum(refused.values()) / read if read else None)
        assert _null_as_none(row["quarantined_blank_share"]) == (refused.get("blank", 0) / read if read else None)


def _null_as_none(value: float | None) -> float | None:
    return None if pd.isna(value) else value


def test_nothing_measured_gives_empty_frames() -> None:
    nothing = as_facts({})
    assert log_hour_frame(WEB, [], nothing, CHECKS).empty
    assert click_hour_frame([], nothing, LAYOUTS, OF_CLICK_HOURS).empty

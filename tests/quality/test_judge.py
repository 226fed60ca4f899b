from __future__ import annotations

from pathlib import Path
from typing import Any

import great_expectations as gx
import great_expectations.expectations as gxe
import pandas as pd
import pytest
from great_expectations.expectations.expectation import Expectation

from expectations.checks import Check, below, between, equal, one_of, zero
from expectations.facts import as_facts
from expectations.frames import click_hour_frame, log_hour_frame
from expectations.judge import Outcome, judge
from expectations.suites import click_hour_checks, log_hour_checks
from include.buckets import Layout
from include.counting import counted_tables
from include.hours import Hour
from include.settings import PipelineSettings
from include.source_fields import LineFields
from include.sources import Source

HOUR = Hour.parse("2026-03-01T05")
DAY = HOUR.day
SETTINGS = PipelineSettings.model_validate(
    {
        "thresholds": {
            "quarantined_share": {"warning": 0.1, "critical": 0.4},
            "quarantined_not_json_share": {"warning": 0.1},
            "unknown_country_share": {"warning": 0.2},
        }
    }
)
SOURCE = Source(name="web", format="json", fields=LineFields(time="ts", url="url"), oldest_hours=24)
ACCOUNT = {
    "source": "web", "log_date": DAY, "log_hour": 5, "lines": 10, "accepted": 9, "duplicates": 0,
    "out_of_order": 0, "files": 1, "bytes": 100, "is_closed": True, "damaged_files": [], "unread_files": [],
}  # fmt: skip
CLICKS = {
    "source": "web", "log_date": DAY, "log_hour": 5, "click_date": DAY, "click_hour": 5, "clicks": 9,
    "counted": {"unknown_country_share": 1}, "first_clicked_micros": HOUR.number * 3_600_000_000,
    "last_clicked_micros": HOUR.number * 3_600_000_000 + 1,
}  # fmt: skip
QUARANTINED = {"source": "web", "log_date": DAY, "log_hour": 5, "reason": "not_json", "quarantined_lines": 1}
PUBLISHED = {"click_date": DAY, "click_hour": 5, "clicks": 9, "rows": 3, "rows_hash": 7}
COUNTED = PUBLISHED | {"keys": 3, "smallest_count": 2, "largest_count": 4, "counted_micros": 10}
SUMS = {
    "time_zone": "UTC", "day": DAY, "keys_that_differ": 0, "hour_clicks": 9, "day_clicks": 9,
    "hours_counted_micros": 10, "day_counted_micros": 11,
}  # fmt: skip
FACTS = as_facts(
    {
        "accounting": [ACCOUNT],
        "clicks": [CLICKS],
        "urls": [{"source": "web", "log_date": DAY, "log_hour": 5, "distinct_urls": 3}],
        "quarantined": [QUARANTINED],
        "publications": [{"click_date": DAY, "click_hour": 5, "published_micros": 11}],
        "counts": [{"key": key, **COUNTED} for key in ("url", "country")],
        "published": [{"key": key, **PUBLISHED} for key in ("url", "country")],
        "days": [{"key": key, **SUMS} for key in ("url", "country")],
    }
)
LAYOUTS = {key: (table, Layout(4, 4, str(table.key_type))) for key, table in counted_tables(SETTINGS.counts).items()}
OF_LOG_HOURS, OF_CLICK_HOURS = log_hour_checks(SETTINGS, SOURCE), click_hour_checks(SETTINGS)
LOG_HOUR = log_hour_frame(SOURCE, [HOUR], FACTS, OF_LOG_HOURS).to_dict("records")[0] | {"partition": "fine"}
CLICK_HOUR = click_hour_frame([HOUR], FACTS, LAYOUTS, OF_CLICK_HOURS).to_dict("records")[0] | {"partition": "fine"}


def _failures(outcomes: list[Outcome]) -> set[tuple[str, str]]:
    return {(outcome.partition, outcome.check.severity) for outcome in outcomes if outcome.has_failed}


def _judge_with(suite: str, fine: dict[Any, Any], wrong: dict[str, Any], docs: Path) -> list[Outcome]:
    checks = OF_LOG_HOURS if suite == "log_hours" else OF_CLICK_HOURS
    assert set(wrong) <= set(fine)
    frame = pd.DataFrame([fine, {**fine, **wrong, "partition": "wrong"}, {**fine, "partition": "fine too"}])
    return judge(suite, frame, checks, docs)


#: What is wrong with a row of the frame, and the severity of the one check that finds it.
LOG_HOUR_FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"accounted_lines": 11}, "critical"),
    ({"stored_clicks": 8}, "critical"),
    ({"duplicate_event_ids": 1}, "critical"),
    ({"null_keys": 1}, "critical"),
    ({"columns_of_other_types": 1}, "critical"),
    ({"click_hours_not_of_their_times": 1}, "critical"),
    ({"oldest_click_hours_before": 24.5}, "critical"),
    ({"newest_click_minutes_after": 10}, "critical"),
    ({"malformed_urls": 1}, "critical"),
    ({"lost_clicks_files": 1}, "critical"),
    ({"clicks_files": 65}, "warning"),
    ({"files": 5001}, "warning"),
    ({"quarantined_not_json_share": 0.11}, "warning"),
    ({"late_share": 0.3}, "warning"),
    ({"bot_share": 0.51}, "warning"),
    ({"invalid_status_share": 0.02}, "warning"),
    ({"is_missing": 1}, "warning"),
    ({"invalid_country_codes": 2}, "critical"),
    ({"quarantined_share": 0.11}, "warning"),
    ({"unknown_country_share": 0.21}, "warning"),
    ({"distinct_url_share": 0.81}, "warning"),
    ({"files_not_closed_or_damaged": 1}, "warning"),
]
CLICK_HOUR_FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"visitors_above_country_clicks": 1}, "warning"),
    ({"published_url_differs": 1}, "critical"),
    ({"lost_url_files": 1}, "critical"),
    ({"country_files": 65}, "warning"),
    ({"smallest_url_count": 0}, "critical"),
    ({"country_rows": 4}, "critical"),
    ({"misplaced_url_rows": 1}, "critical"),
    ({"bots_above_country_clicks": 1}, "critical"),
    ({"url_fewest_buckets": 8, "url_most_buckets": 8}, "critical"),
    ({"country_most_buckets": 8}, "critical"),
    ({"url_key_type": "BIGINT"}, "critical"),
    ({"top_url_share": 0.51}, "warning"),
]


def test_log_hour_with_one_fault_fails_one_check(tmp_path: Path) -> None:
    rows = [{**LOG_HOUR, **wrong, "partition": str(wrong)} for wrong, _ in LOG_HOUR_FAULTS]
    outcomes = judge("log_hours", pd.DataFrame([LOG_HOUR, *rows]), OF_LOG_HOURS, tmp_path)
    failed = [outcome for outcome in outcomes if outcome.has_failed]
    assert _failures(outcomes) == {(str(wrong), severity) for wrong, severity in LOG_HOUR_FAULTS}
    assert len(failed) == len(LOG_HOUR_FAULTS)
    for outcome in failed:
        (wrong,) = (wrong for wrong, _ in LOG_HOUR_FAULTS if str(wrong) == outcome.partition)
        ((column, value),) = wrong.items()
        assert outcome.is_critical_failure == (outcome.check.severity == "critical")
        assert f"{column} = {value}" in outcome.finding.observed
    assert "log_hours" in {path.stem for path in tmp_path.iterdir()}


def test_click_hour_with_one_fault_fails_one_check(tmp_path: Path) -> None:
    rows = [{**CLICK_HOUR, **wrong, "partition": str(wrong)} for wrong, _ in CLICK_HOUR_FAULTS]
    outcomes = judge("click_hours", pd.DataFrame([CLICK_HOUR, *rows]), OF_CLICK_HOURS, tmp_path)
    assert _failures(outcomes) == {(str(wrong), severity) for wrong, severity in CLICK_HOUR_FAULTS}
    assert sum(outcome.has_failed for outcome in outcomes) == len(CLICK_HOUR_FAULTS)


def test_a_share_above_both_bounds_fails_both(tmp_path: Path) -> None:
    outcomes = _judge_with("log_hours", LOG_HOUR, {"quarantined_share": 0.41}, tmp_path)
    failed = {o.check.name: (o.check.severity, o.finding.value, o.finding.highest) for o in outcomes if o.has_failed}
    assert failed == {
        "quarantined_share": ("warning", 0.41, 0.1),
        "quarantined_share_critical": ("critical", 0.41, 0.4),
    }


def test_two_numbers_that_must_be_equal_are_each_other_s_bounds(tmp_path: Path) -> None:
    outcomes = _judge_with("log_hours", LOG_HOUR, {"accounted_lines": 11}, tmp_path)
    (failed,) = [outcome for outcome in outcomes if outcome.has_failed]
    assert (failed.finding.value, failed.finding.lowest, failed.finding.highest) == (10, 11, 11)
    assert failed.finding.observed == "lines = 10, accounted_lines = 11"


def test_an_hour_that_lost_its_clicks_is_judged_by_what_is_left(tmp_path: Path) -> None:
    frame = click_hour_frame([HOUR], as_facts({}), LAYOUTS, OF_CLICK_HOURS)
    outcomes = judge("click_hours", frame, OF_CLICK_HOURS, tmp_path)
    assert _failures(outcomes) == set()
    judged = {outcome.check.name for outcome in outcomes}
    assert {"clicks_equal_urls", "url_once"} <= judged
    assert not {"url_count_positive", "published_url_equals_computed"} & judged


def test_an_hour_that_was_never_ingested_is_missing_and_no_more(tmp_path: Path) -> None:
    frame = log_hour_frame(SOURCE, [HOUR, HOUR.plus(1)], FACTS, OF_LOG_HOURS)
    outcomes = judge("log_hours", frame, OF_LOG_HOURS, tmp_path)
    missing = [outcome for outcome in outcomes if outcome.hour == str(HOUR.plus(1))]
    assert [(o.check.name, o.outcome, o.finding.observed) for o in missing] == [
        ("hour_is_there", "fail", "is_missing = 1; it was never ingested")
    ]
    assert {o.check.name for o in outcomes if o.has_failed} == {"hour_is_there"}


def test_a_null_has_no_outcome_or_the_one_that_the_check_names(tmp_path: Path) -> None:
    frame = pd.DataFrame([{"partition": "p", "source": None, "hour": "2026-03-01T05", "number": None}])
    check = Check(
        suite="volume",
        name="number_is_zero",
        table="clicks",
        expectation=zero("number"),
        severity="warning",
        holds="it is 0",
        reason="why",
    )
    told = Check(
        suite="volume",
        name="told",
        table="clicks",
        expectation=zero("number"),
        severity="warning",
        holds="it is 0",
        reason="why",
        when_null="not_enough_history",
    )
    (outcome,) = judge("volume", frame, [check, told], tmp_path)
    assert (outcome.check.name, outcome.outcome, outcome.has_failed) == ("told", "not_enough_history", False)
    assert outcome.finding.observed == "number = nothing"


def test_a_check_of_a_number_that_nobody_measures_is_an_error(tmp_path: Path) -> None:
    frame = pd.DataFrame([{"partition": "p", "source": None, "hour": "2026-03-01T05", "other": 0}])
    check = Check(
        suite="clicks",
        name="x",
        table="clicks",
        expectation=zero("number"),
        severity="warning",
        holds="it is 0",
        reason="why",
    )
    with pytest.raises(KeyError, match="number"):
        judge("clicks", frame, [check], tmp_path)


def test_empty_frame_has_no_outcomes(tmp_path: Path) -> None:
    assert judge("log_hours", pd.DataFrame(), OF_LOG_HOURS, tmp_path) == []


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (between("a", 0, 1), gxe.ExpectColumnValuesToBeBetween(column="a", min_value=0, max_value=1)),
        (below("a", 5), gxe.ExpectColumnValuesToBeBetween(column="a", max_value=5, strict_max=True)),
        (equal("a", "b"), gxe.ExpectColumnPairValuesToBeEqual(column_A="a", column_B="b")),
        (one_of("a", "x", "y"), gxe.ExpectColumnValuesToBeInSet(column="a", value_set=["x", "y"])),
    ],
    ids=lambda expectation: type(expectation).__name__,
)
def test_an_expectation_is_great_expectations_own_and_its_configuration_made_once(
    ours: Expectation, theirs: Expectation
) -> None:
    assert isinstance(ours, type(theirs))
    assert ours.configuration.kwargs == theirs.configuration.kwargs
    assert ours.configuration is ours.configuration
    ours.meta = {"check": 7}
    assert ours.configuration.meta == {"check": 7}
    numbers = isinstance(theirs, gxe.ExpectColumnValuesToBeBetween)
    values = [0.0, 1.0, 5.0, None] if numbers else ["x", "z", "y", None]
    frame = pd.DataFrame({"a": values, "b": ["x", "y", "z", None]})
    result = _judged(ours, frame)
    assert result == _judged(theirs, frame)
    assert not result[0]


def _judged(expectation: Expectation, frame: pd.DataFrame) -> Any:
    context = gx.get_context(mode="ephemeral")
    asset = context.data_sources.add_pandas("frames").add_dataframe_asset("one")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": frame})
    validation = batch.validate(expectation, result_format={"result_format": "COMPLETE"})
    return validation.success, validation.result

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from expectations.judge import Outcome, judge
from expectations.suites import click_hour_checks, log_hour_checks
from include.buckets import NOT_STATED, PARTITIONER
from include.settings import PipelineSettings

SETTINGS = PipelineSettings(max_quarantined_share=0.1, max_unknown_country_share=0.2, max_top_key_share=0.5)
LOG_HOUR = {
    "partition": "fine", "source": None, "hour": "2026-03-01T05",
    "lines": 10, "accounted_lines": 10, "accepted": 9, "stored_clicks": 9,
    "duplicate_event_ids": 0, "null_keys": 0, "invalid_country_codes": 0, "quarantined_share": 0.1,
    "unknown_country_share": 0.2, "files_not_closed_or_damaged": 0,
}  # fmt: skip
CLICK_HOUR: dict[str, Any] = {
    "partition": "fine",
    "source": None,
    "hour": "2026-03-01T05",
    "clicks": 9,
    "clicks_by_url": 9,
    "clicks_by_country": 9,
}
for _key in ("url", "country"):
    CLICK_HOUR |= {
        f"smallest_{_key}_count": 1, f"{_key}_rows": 3, f"{_key}_keys": 3, f"misplaced_{_key}_rows": 0,
        f"bots_above_{_key}_clicks": 0, f"{_key}_buckets": 4, f"top_{_key}_share": 0.5,
        f"{_key}_partitioner": PARTITIONER, f"{_key}_key_type": "STRING",
    }  # fmt: skip


def _failures(outcomes: list[Outcome]) -> set[tuple[str, str]]:
    return {(outcome.partition, outcome.check.severity) for outcome in outcomes if not outcome.success}


def _judge_with(suite: str, fine: dict[str, Any], wrong: dict[str, Any], docs: Path) -> list[Outcome]:
    checks = log_hour_checks(SETTINGS) if suite == "log_hours" else click_hour_checks(SETTINGS)
    frame = pd.DataFrame([fine, {**fine, **wrong, "partition": "wrong"}, {**fine, "partition": "fine too"}])
    outcomes = judge(suite, frame, checks, docs)
    assert len(outcomes) == 3 * len(checks)
    return outcomes


@pytest.mark.parametrize(
    ("wrong", "severity"),
    [
        ({"accounted_lines": 11}, "critical"),
        ({"stored_clicks": 8}, "critical"),
        ({"duplicate_event_ids": 1}, "critical"),
        ({"null_keys": 1}, "critical"),
        ({"invalid_country_codes": 2}, "critical"),
        ({"quarantined_share": 0.11}, "warning"),
        ({"unknown_country_share": 0.21}, "warning"),
        ({"files_not_closed_or_damaged": 1}, "warning"),
    ],
)
def test_log_hour_with_one_fault_fails_one_check(tmp_path: Path, wrong: dict[str, Any], severity: str) -> None:
    outcomes = _judge_with("log_hours", LOG_HOUR, wrong, tmp_path)
    (failed,) = [outcome for outcome in outcomes if not outcome.success]
    ((column, value),) = wrong.items()
    assert (failed.partition, failed.check.severity) == ("wrong", severity)
    assert failed.is_critical_failure == (severity == "critical")
    assert failed.observed is not None
    assert f"{column} = {value}" in failed.observed
    assert "log_hours" in {path.stem for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("wrong", "severity"),
    [
        ({"clicks_by_country": 8}, "critical"),
        ({"clicks": 8}, "critical"),
        ({"smallest_url_count": 0}, "critical"),
        ({"country_rows": 4}, "critical"),
        ({"misplaced_url_rows": 1}, "critical"),
        ({"bots_above_country_clicks": 1}, "critical"),
        ({"url_buckets": 8}, "critical"),
        ({"country_partitioner": NOT_STATED}, "warning"),
        ({"url_key_type": "BIGINT"}, "critical"),
        ({"top_url_share": 0.51}, "warning"),
    ],
)
def test_click_hour_with_one_fault_fails_one_check(tmp_path: Path, wrong: dict[str, Any], severity: str) -> None:
    outcomes = _judge_with("click_hours", CLICK_HOUR, wrong, tmp_path)
    assert [(o.partition, o.check.severity) for o in outcomes if not o.success] == [("wrong", severity)]


def test_another_partitioner_is_critical(tmp_path: Path) -> None:
    outcomes = _judge_with("click_hours", CLICK_HOUR, {"url_partitioner": "md5"}, tmp_path)
    assert _failures(outcomes) == {("wrong", "critical"), ("wrong", "warning")}


def test_fine_hours_and_hours_that_lost_their_clicks_pass(tmp_path: Path) -> None:
    empty = {name: 0 for name in CLICK_HOUR} | {"smallest_url_count": None, "smallest_country_count": None}
    empty |= {name: CLICK_HOUR[name] for name in CLICK_HOUR if name.endswith(("_buckets", "_partitioner", "_type"))}
    assert _failures(_judge_with("click_hours", CLICK_HOUR, empty, tmp_path)) == set()
    only_empty = pd.DataFrame([{**empty, "partition": "empty"}])
    assert _failures(judge("click_hours", only_empty, click_hour_checks(SETTINGS), tmp_path)) == set()


def test_empty_frame_has_no_outcomes(tmp_path: Path) -> None:
    assert judge("log_hours", pd.DataFrame(), log_hour_checks(SETTINGS), tmp_path) == []

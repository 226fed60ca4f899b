"""What is found of hours from facts alone: edges that a lake of the tests does not have."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expectations.checks import Check
from expectations.facts import Facts, as_facts
from expectations.judge import Finding, Partition, judge_findings
from expectations.suites.schema_drift import schema_drift_findings
from expectations.suites.volume import click_hour_checks, log_hour_checks, volume_findings
from include.hours import Hour
from include.source_fields import LineFields
from include.sources import Source
from include.usual_range import SchemaDriftSettings, VolumeSettings

NOW = Hour.parse("2026-03-29T05")
BOTH = {Partition(NOW), Partition(NOW, "web")}
DEFAULT = VolumeSettings()


def _checks(settings: VolumeSettings) -> list[Check]:
    return [*click_hour_checks(settings), *log_hour_checks(settings)]


WEB = Source(name="web", format="json", fields=LineFields(time="ts", url="url", country="geo.country"))


def _facts(facts: Iterable[tuple[str, dict[str, Any]]]) -> Facts:
    by_subject: dict[str, list[dict[str, Any]]] = {}
    for subject, fact in facts:
        by_subject.setdefault(subject, []).append(fact)
    return as_facts(by_subject)


def _account(hour: Hour, lines: int = 1000, quarantined: int = 0, source: str = "web", **more: Any) -> dict[str, Any]:
    return {
        "source": source, "log_date": hour.day, "log_hour": hour.hour, "lines": lines, "quarantined": quarantined,
        "files": 1, "is_closed": True, **more,
    }  # fmt: skip


def _never_landed(hour: Hour) -> dict[str, Any]:
    return _account(hour, 0, files=0, is_closed=False)


def _counted(hour: Hour, clicks: int, visitors: int) -> dict[str, Any]:
    return {"click_date": hour.day, "click_hour": hour.hour, "clicks": clicks, "visitors": visitors}


def _clicks_finding(history: list[int | None], now: int, settings: VolumeSettings = DEFAULT) -> Finding:
    """Of the clicks, the history being that of the days before, the newest first; null: nothing landed."""
    facts = []
    for day, clicks in enumerate([now, *history]):
        hour = NOW.plus(-24 * day)
        facts.append(("accounting_history", _never_landed(hour) if clicks is None else _account(hour)))
        facts += [("click_history", _counted(hour, clicks, clicks))] if clicks else []
    return volume_findings({Partition(NOW)}, _facts(facts), settings)[Partition(NOW), "clicks"]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 10**6), min_size=7, max_size=28), st.integers(0, 10**6))
def test_clicks_are_judged_as_numpy_would(history: list[int], now: int) -> None:
    finding = _clicks_finding(list(history), now)
    median = np.median(history)
    deviation = max(1.4826 * np.median(np.abs(np.array(history) - median)), 0.05 * median, 3)
    assert finding.judged == pytest.approx((now - median) / deviation)
    assert finding.lowest == pytest.approx(max(0, median - 3.5 * deviation))
    assert finding.highest == pytest.approx(median + 3.5 * deviation)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.none() | st.integers(0, 10**6), max_size=28))
def test_fewer_than_seven_days_that_landed_are_never_judged(history: list[int | None]) -> None:
    days = sum(clicks is not None for clicks in history)
    finding = _clicks_finding(history, 1000)
    assert (finding.judged is None) == (days < 7)
    assert f"{days} of the 7 days" in finding.observed or f"median of {days} days" in finding.observed


def test_a_day_beyond_the_settings_is_no_history() -> None:
    settings = VolumeSettings(days=7, min_points=7)
    assert _clicks_finding([None] + [1000] * 7, 1000, settings).judged is None
    assert _clicks_finding([1000] * 8, 1000, settings).judged == 0


def test_an_hour_that_is_usually_empty_may_have_a_few_clicks() -> None:
    assert _clicks_finding([0] * 9, 10).judged == pytest.approx(10 / 3)
    assert _clicks_finding([0] * 9, 10).observed.startswith(
        "clicks = 10; median of 9 days 0, expected 0 to 10; 28 Mar 0"
    )


def test_click_hours_of_fast_clocks_are_not_judged_before_their_log_hour_is_there() -> None:
    before = [NOW.plus(-24 * day) for day in range(1, 10)]
    facts = [("accounting_history", _account(hour)) for hour in before]
    facts += [("click_history", _counted(hour, 1000, 10)) for hour in before]
    facts += [("click_history", _counted(NOW, 2, 1))]
    assert volume_findings(BOTH, _facts(facts), DEFAULT) == {}
    facts += [("accounting_history", _account(NOW, source="other"))]
    findings = volume_findings(BOTH, _facts(facts), DEFAULT)
    assert {(str(partition), check) for partition, check in findings} == {(str(NOW), "clicks"), (str(NOW), "visitors")}
    judged = findings[Partition(NOW), "clicks"].judged
    assert judged is not None
    assert judged < -3.5


def test_late_clicks_before_the_first_log_hour_are_no_history() -> None:
    """A week of stray clicks before the first delivery must not make it look like a flood."""
    facts = [("click_history", _counted(NOW.plus(-24 * day), 2, 1)) for day in range(1, 9)]
    facts += [("accounting_history", _account(NOW)), ("click_history", _counted(NOW, 9, 9))]
    findings = volume_findings(BOTH, _facts(facts), DEFAULT)
    assert {finding.judged for finding in findings.values()} == {None}


LOG_HOUR = ("lines", "quarantined_share", "left_out_share")


def test_what_is_left_out_is_judged_as_a_share_of_all_lines_and_hides_no_bad_one() -> None:
    usual = [("accounting_history", _account(NOW.plus(-24 * day), 1000, 2) | {"left_out": 900}) for day in range(1, 9)]
    more = [("accounting_history", _account(NOW, 1000, 8) | {"left_out": 960})]
    findings = volume_findings(BOTH, _facts([*usual, *more]), DEFAULT)
    shares = {name: findings[Partition(NOW, "web"), name] for name in ("left_out_share", "quarantined_share")}
    assert {name: round(finding.value or 0, 6) for name, finding in shares.items()} == {
        "left_out_share": 0.96, "quarantined_share": 0.2,
    }  # fmt: skip
    assert all((finding.judged or 0) > 0 for finding in shares.values())


def test_each_source_has_a_history_of_its_own() -> None:
    facts = [
        ("accounting_history", _account(NOW.plus(-24 * day), lines, source=source))
        for source, lines in (("web", 1000), ("shop", 10))
        for day in range(9)
    ]
    findings = volume_findings({Partition(NOW, "shop"), Partition(NOW, "web")}, _facts(facts), DEFAULT)
    assert {(str(partition), check): finding.judged for (partition, check), finding in findings.items()} == {
        (f"{source} {NOW}", check): 0 for source in ("shop", "web") for check in LOG_HOUR
    }


@pytest.mark.parametrize(
    ("lines", "quarantined", "is_fine"),
    [(10_000, 175, True), (10_000, 176, False), (100, 10, True), (100, 11, False), (5, 5, True)],
)
def test_share_of_few_lines_is_judged_by_lines(lines: int, quarantined: int, is_fine: bool) -> None:
    facts = [("accounting_history", _account(NOW.plus(-24 * day))) for day in range(1, 9)]
    facts += [("accounting_history", _account(NOW, lines, quarantined))]
    finding = volume_findings(BOTH, _facts(facts), DEFAULT)[Partition(NOW, "web"), "quarantined_share"]
    assert finding.judged is not None
    assert (finding.judged <= DEFAULT.warning_deviations + 1e-9) == is_fine


def test_less_in_quarantine_than_usual_is_no_fault(tmp_path: Path) -> None:
    facts = [("accounting_history", _account(NOW.plus(-24 * day), 1000, 300)) for day in range(1, 9)]
    facts += [("accounting_history", _account(NOW, 1000, 0))]
    findings = volume_findings({Partition(NOW, "web")}, _facts(facts), DEFAULT)
    outcomes = {o.check.name: o.outcome for o in judge_findings("h", findings, _checks(DEFAULT), tmp_path)}
    assert outcomes == dict.fromkeys(LOG_HOUR, "pass")


def test_only_with_a_bound_is_there_a_critical_check() -> None:
    assert {check.severity for check in _checks(DEFAULT)} == {"warning"}
    strict = _checks(VolumeSettings(critical_deviations=12))
    assert {check.name for check in strict if check.severity == "critical"} == {
        "clicks_critical", "visitors_critical", *(f"{name}_critical" for name in LOG_HOUR),
    }  # fmt: skip


def test_nothing_found_has_no_outcomes(tmp_path: Path) -> None:
    assert judge_findings("history", {}, _checks(DEFAULT), tmp_path) == []


def _drift(
    before: list[dict[tuple[str, str], int]], now: dict[tuple[str, str], int], lines: int = 100
) -> dict[str, Finding]:
    """By check; hours are given as the lines of each path and type, the newest first."""
    facts = []
    for shift, fields in enumerate([now, *before]):
        sampled = [
            {"path": path, "type": type_, "lines": count, "example": "e"} for (path, type_), count in fields.items()
        ]
        facts.append(("accounting_history", _account(NOW.plus(-shift), sampled_lines=lines, sampled_fields=sampled)))
    settings = SchemaDriftSettings(hours=24, days=0, min_hours=2)
    return {
        check: finding for (_, check), finding in schema_drift_findings([NOW], [WEB], _facts(facts), settings).items()
    }


A, B = ("a", "string"), ("b", "integer")


def test_a_field_that_half_of_the_hours_had_is_usual() -> None:
    assert _drift([{A: 100, B: 100}] * 3 + [{A: 100}] * 2, {A: 100})["no_fields_gone"].value == 1
    assert _drift([{A: 100, B: 100}] * 2 + [{A: 100}] * 3, {A: 100})["no_fields_gone"].value == 0


@pytest.mark.parametrize(("lines_before", "gone"), [(100, 1), (10, 1), (9, 0)])
def test_a_field_of_few_lines_may_be_in_none_by_chance(lines_before: int, gone: int) -> None:
    assert _drift([{A: 100, B: lines_before}] * 3, {A: 100})["no_fields_gone"].value == gone


def test_a_field_once_seen_is_not_new_again() -> None:
    assert _drift([{A: 100}] * 5 + [{A: 100, ("b", "null"): 1}], {A: 100, B: 100})["no_new_fields"].value == 0
    assert _drift([{A: 100}] * 5, {A: 100, ("b", "null"): 1})["no_new_fields"].value == 1


def test_null_is_no_type() -> None:
    findings = _drift([{A: 90, ("a", "null"): 10}] * 3, {("a", "null"): 60, A: 40})
    assert [finding.value for finding in findings.values()] == [0, 0, 0]
    assert _drift([{("a", "null"): 100}] * 3, {A: 100})["no_types_changed"].value == 0


def test_whole_numbers_are_numbers_and_not_the_other_way_round() -> None:
    number, integer = ("n", "number"), ("n", "integer")
    assert _drift([{number: 100}] * 3, {integer: 100})["no_types_changed"].value == 0
    assert _drift([{integer: 100}] * 3, {number: 1, integer: 99})["no_types_changed"].value == 1


def test_mapped_fields_are_reported_first_and_as_worse() -> None:
    country = ("geo.country", "string")
    gone = _drift([{A: 100, country: 100}] * 3, {B: 100})["no_fields_gone"]
    assert gone.examples == (
        "geo.country (mapped: country): in none of 100 sampled lines, before in 100%, and the clicks are without it",
        "a: in none of 100 sampled lines, before in 100%",
    )


def test_what_is_reported_is_bounded_and_printable() -> None:
    made_up = {(f"field-{n:03d}\x1b[2J", "string"): 1 for n in range(100)}
    new = _drift([{A: 100}] * 3, {A: 100} | made_up)["no_new_fields"]
    assert (new.value, len(new.examples)) == (100, 20)
    assert new.observed.startswith("100 fields; field-000\\x1b[2J: string in 1 of 100 sampled lines, such as e; ")
    assert len(new.observed) < 1000


def test_too_few_earlier_hours_are_not_judged() -> None:
    assert {finding.judged for finding in _drift([{A: 100}], {B: 100}).values()} == {None}
    assert {finding.judged for finding in _drift([], {B: 100}).values()} == {None}

"""Each check fails for the fault that it is there for, with its severity, words and partition; no other does."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from include.errors import QualityError
from include.hours import Hour
from include.tables import AGGREGATES, QUALITY_RESULTS
from tests.support.fault import Fault
from tests.support.lake_faults import PLANTED, TABLE_WIDE
from tests.support.landed_faults import LANDED, PIPELINE, SOURCE_CHECKS, START, fine_lines
from tests.support.planted_faults import FAULTS, PAGE, all_checks, kind_of, page
from tests.support.planting import in_buckets
from tests.support.temporary_lake import TemporaryLake

#: Partition, check and severity of what failed, and the row that says so.
Failures = dict[tuple[str, str, str], dict[str, Any]]

HOURS = {fault.description: START.plus(place) for place, fault in enumerate([*LANDED, *PLANTED], start=1)}
EMPTY = START.plus(len(HOURS) + 1)
LAST = START.plus(len(HOURS) + 2)
END = LAST.plus(1)


@dataclass
class FaultyLake:
    """A lake with faults, and what failed at which stage."""

    lake: TemporaryLake
    landed: Failures
    planted: Failures


@pytest.fixture(scope="module")
def faulty(make_lake: Callable[[str], TemporaryLake]) -> FaultyLake:
    """Land an hour for each fault and some without; ingest and count them; validate; plant the rest; validate."""
    lake = make_lake("faults")
    for file, text in ((lake.settings.pipeline_file, PIPELINE), (lake.settings.sources_file, SOURCE_CHECKS)):
        file.write_text(file.read_text(encoding="utf-8") + text, encoding="utf-8")
    by_hour = {HOURS[fault.description]: fault for fault in LANDED}
    for hour in [START, *HOURS.values(), LAST]:
        _land(lake, hour, by_hour.get(hour))
    lake.land(str(EMPTY), {})
    lake.run("ingest", str(START), str(END), allow_missing=True)
    lake.run("aggregate", str(START), str(END))
    landed = _validate(lake, START, END)
    for fault in PLANTED:
        assert fault.plant
        fault.plant(lake, HOURS[fault.description])
    return FaultyLake(lake, landed, _validate(lake, START, END))


def _land(lake: TemporaryLake, hour: Hour, fault: Fault | None) -> None:
    if fault and not fault.files:
        return
    lines = fault.lines(hour) if fault and fault.lines else fine_lines(hour)
    count = fault.files if fault else 1
    size = -(-len(lines) // count)
    files = {f"{number}.json": b"".join(lines[number * size : (number + 1) * size]) for number in range(count)}
    folder = lake.land(str(hour), files, is_closed=fault.is_closed if fault else True)
    if fault and fault.folder:
        (folder / fault.folder).mkdir()


def _validate(lake: TemporaryLake, start: Hour, end: Hour) -> Failures:
    """Validate, and give what failed in that run.

    But for days that are no sums of their hours: a fault in one hour shows in all hours of its day. Faults of days
    are planted by tests/quality/test_day_checks.py.
    """
    with pytest.raises(QualityError):
        lake.run("validate", str(start), str(end))
    results = lake.rows(QUALITY_RESULTS, without=())
    newest = max(row["validated_at"] for row in results)
    return {
        (row["partition"], f"{row['suite']}.{row['check_id']}", row["severity"]): row
        for row in results
        if row["validated_at"] == newest and row["outcome"] == "fail" and "_days_equal_" not in row["check_id"]
    }


def _expected(fault: Fault, hour: Hour, operator: str) -> set[tuple[str, str, str]]:
    places = {"log hour": f"web {hour}", "click hour": str(hour), "operator": operator}
    severities = {name: check.severity for name, (_, check) in all_checks().items()}
    return {(places[kind_of(fault.check)], fault.check, fault.severity)} | {
        (places[kind_of(name)], name, severities[name]) for name in fault.also
    }


def _of_hour(failures: Failures, hour: Hour) -> set[tuple[str, str, str]]:
    return {failure for failure in failures if failure[0] in (f"web {hour}", str(hour))}


def _assert_fails(fault: Fault, failures: Failures, hour: Hour) -> None:
    operator = f"count_by_url {START}..{END}"
    expected = _expected(fault, hour, operator)
    actual = _of_hour(failures, hour) | {
        failure for failure in failures if failure[0] == operator and failure in expected
    }
    assert actual == expected
    row = next(
        row
        for (_, name, _), row in failures.items()
        if name == fault.check and row["partition"] in _places(hour, operator)
    )
    assert fault.observed in row["observed"]
    assert bool(row["examples"]) == fault.has_examples
    assert len(row["examples"]) <= 20
    assert all(json.loads(text) if len(text) < 500 else text.startswith("{") for text in row["examples"])


def _places(hour: Hour, operator: str) -> set[str]:
    return {f"web {hour}", str(hour), operator}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("fault", LANDED, ids=lambda fault: fault.check)
def test_what_landed_wrongly_fails_its_check(faulty: FaultyLake, fault: Fault) -> None:
    _assert_fails(fault, faulty.landed, HOURS[fault.description])


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.check)
def test_what_was_planted_fails_its_check(faulty: FaultyLake, fault: Fault) -> None:
    assert not _of_hour(faulty.landed, HOURS[fault.description]), "the hour was fine before"
    _assert_fails(fault, faulty.planted, HOURS[fault.description])


@pytest.mark.spark
@pytest.mark.slow
def test_nothing_else_fails(faulty: FaultyLake) -> None:
    operator = f"count_by_url {START}..{END}"
    of_landed = {failure for fault in LANDED for failure in _expected(fault, HOURS[fault.description], operator)}
    of_planted = {failure for fault in PLANTED for failure in _expected(fault, HOURS[fault.description], operator)}
    assert set(faulty.landed) == of_landed
    assert set(faulty.planted) == of_landed | of_planted


@pytest.mark.spark
@pytest.mark.slow
def test_an_empty_hour_is_known_from_a_missing_one(faulty: FaultyLake) -> None:
    rows = [row for row in faulty.lake.rows(QUALITY_RESULTS) if row["check_id"] == "hour_is_there"]
    texts = {row["observed"] for row in rows if row["hour"] == str(EMPTY)}
    assert texts == {"is_missing = 0; it is empty: closed by _SUCCESS, without a line"}


@pytest.mark.spark
@pytest.mark.slow
def test_what_is_wrong_with_whole_tables_fails_its_check(faulty: FaultyLake) -> None:
    """Last in this file: what it does to the tables stays."""
    for faults in TABLE_WIDE:
        for table in AGGREGATES:
            in_buckets(table, 4, "buckets = 7")(faulty.lake, LAST)
        for fault in faults:
            if fault.plant:
                fault.plant(faulty.lake, LAST)
        # One hour more than was ingested.
        failures = _validate(faulty.lake, LAST, END.plus(1))
        missing = (f"web {END}", "reconciliation.hour_is_there", "warning")
        expected = {failure for fault in faults for failure in _expected(fault, LAST, "") if fault.plant}
        assert set(failures) == expected | {missing}
        for fault in faults:
            of_check = [row for (_, name, _), row in failures.items() if name == fault.check]
            assert [fault.observed in row["observed"] for row in of_check] == [True]


def test_every_check_has_a_fault() -> None:
    planted = {fault.check for fault in FAULTS if ".configured_" not in fault.check}
    assert set(all_checks()) == planted
    for fault in FAULTS:
        if fault.check in all_checks():
            assert all_checks()[fault.check][1].severity == fault.severity


def test_docs_say_which_faults_were_planted() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: .venv/bin/python -m tests.support.planted_faults"

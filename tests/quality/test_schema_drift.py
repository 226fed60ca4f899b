"""Fields of a JSON source that are new, gone or of another type are found by those of its earlier log hours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from include.hours import Hour
from include.tables import INGEST_ACCOUNTING, QUALITY_RESULTS
from tests.support.fault import Fault
from tests.support.history_faults import DRIFT_FAULTS, DRIFT_LINES, FINE_DRIFTS, UNWATCHED, drift_lines
from tests.support.temporary_lake import TemporaryLake

pytestmark = [pytest.mark.spark, pytest.mark.slow]

START = Hour.parse("2026-03-01T00")
#: So many hours are not judged.
FIRST_HOURS = 6
CHANGED = [*(fault.description for fault in DRIFT_FAULTS), *FINE_DRIFTS]
HOURS = {description: START.plus(FIRST_HOURS + n) for n, description in enumerate(CHANGED)}
EMPTY = START.plus(FIRST_HOURS + len(HOURS))
END = EMPTY.plus(1)


@pytest.fixture(scope="module")
def judged(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    """Hours of one day, in one run: at first clean ones, then those with faults."""
    lake = make_lake("drift")
    file = lake.settings.sources_file
    web, *others = file.read_text(encoding="utf-8").split('format = "json"\n')
    unwatched = f'format = "json"\nunwatched_fields = ["{UNWATCHED}"]\n'
    file.write_text(unwatched.join([web, *others]), encoding="utf-8")
    lines = FINE_DRIFTS | {fault.description: fault.lines for fault in DRIFT_FAULTS if fault.lines}
    for number in range(FIRST_HOURS):
        hour = START.plus(number)
        lake.land(str(hour), {"a.json": b"".join(drift_lines(hour))})
    for description, hour in HOURS.items():
        lake.land(str(hour), {"a.json": b"".join(lines[description](hour))})
    lake.land(str(EMPTY), {})
    for job in ("ingest", "aggregate", "validate"):
        lake.run(job, str(START), str(END))
    return lake


def _rows(lake: TemporaryLake, hour: Hour) -> dict[str, dict[str, Any]]:
    """By check, those that failed in all other suites but those about the shape of so small a lake included."""
    return {
        f"{row['suite']}.{row['check_id']}": row
        for row in lake.rows(QUALITY_RESULTS)
        if row["partition"] == f"web {hour}"
        if row["suite"] == "schema_drift" or (row["outcome"] == "fail" and row["suite"] != "volume")
    }


@pytest.mark.parametrize("fault", DRIFT_FAULTS, ids=lambda fault: fault.description)
def test_fault_is_warned_of_and_nothing_else(judged: TemporaryLake, fault: Fault) -> None:
    hour = HOURS[fault.description]
    failed = {name: row for name, row in _rows(judged, hour).items() if row["outcome"] == "fail"}
    assert set(failed) == {fault.check, *fault.also}
    assert {row["severity"] for row in failed.values()} == {fault.severity}
    row = failed[fault.check]
    earlier = (hour.start - START.start).seconds // 3600
    assert row["observed"] == f"{fault.observed}{earlier} earlier log hours"
    assert (row["source"], row["checked_table"]) == ("web", "ingest_accounting")
    assert (row["observed_value"], row["lowest"], row["highest"]) == (len(row["examples"]), 0, 0)


def test_each_field_is_an_example(judged: TemporaryLake) -> None:
    rows = _rows(judged, HOURS["a new field"])
    assert rows["schema_drift.no_new_fields"]["examples"] == [
        "basket: object in 40 of 40 sampled lines",
        "basket.total: number in 40 of 40 sampled lines, such as 12.5",
    ]
    rows = _rows(judged, HOURS["a mapped field renamed"])
    assert rows["schema_drift.no_new_fields"]["examples"] == [
        "referer: string in 40 of 40 sampled lines, such as http://else.test/"
    ]


@pytest.mark.parametrize("description", FINE_DRIFTS)
def test_what_is_no_fault_passes_every_check(judged: TemporaryLake, description: str) -> None:
    rows = _rows(judged, HOURS[description])
    assert [row["outcome"] for row in rows.values()] == ["pass"] * 3
    assert all(row["observed"].startswith("none; of 1") for row in rows.values())


def test_first_hours_are_not_judged_and_say_so(judged: TemporaryLake) -> None:
    for number in range(FIRST_HOURS):
        rows = _rows(judged, START.plus(number)).values()
        assert [row["outcome"] for row in rows] == ["not_enough_history"] * 3
        text = f"12 fields in 40 sampled lines; {number} earlier log hours of the 6 needed"
        assert {row["observed"] for row in rows} == {text}


def test_an_empty_hour_has_no_fields_to_judge(judged: TemporaryLake) -> None:
    assert _rows(judged, EMPTY) == {}


def test_unwatched_fields_are_not_in_the_accounting(judged: TemporaryLake) -> None:
    account = judged.accounting()[str(HOURS["an unwatched field"])]
    assert account["sampled_lines"] == DRIFT_LINES
    assert not [field for field in account["sampled_fields"] if field["path"].startswith(UNWATCHED)]


def test_access_logs_have_no_fields(lake: TemporaryLake) -> None:
    line = b'192.0.2.1 - - [01/Mar/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "Mozilla/5.0"\n'
    lake.land(str(START), {"a.log": line}, source="access")
    lake.run_all(str(START), source="access")
    account = lake.accounting()[str(START)]
    assert (account["lines"], account["sampled_lines"], account["sampled_fields"]) == (1, None, None)
    assert "schema_drift" not in {row["suite"] for row in lake.rows(QUALITY_RESULTS)}


def test_a_lake_of_an_earlier_version_is_judged_and_gets_the_columns(judged: TemporaryLake) -> None:
    """Its accounting lacks the columns: validated as it is, they are null; ingested again, they are there."""
    path = str(judged.settings.lake / INGEST_ACCOUNTING.name)
    former = judged.spark.read.format("delta").load(path).drop("sampled_lines", "sampled_fields")
    former.write.format("delta").mode("overwrite").option("overwriteSchema", True).save(path)
    hour, before = str(START.plus(1)), str(START)
    assert "sampled_lines" not in judged.accounting()[hour]
    judged.run("validate", hour)
    judged.run("ingest", hour)
    assert judged.accounting()[hour]["sampled_lines"] == DRIFT_LINES
    assert judged.accounting()[before]["sampled_lines"] is None

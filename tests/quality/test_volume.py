"""Hours with too few or too many clicks, visitors, lines or quarantined lines are found by what is usual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import functions as F

from include.errors import QualityError
from include.hours import Hour
from include.tables import CLICKS_BY_COUNTRY_HOURLY, INGEST_ACCOUNTING, QUALITY_RESULTS
from tests.support.fault import Fault
from tests.support.history_faults import FINE_VOLUMES, RULE_OF_TESTS, USUAL_VISITORS, VOLUME_FAULTS, volume_lines
from tests.support.temporary_lake import TemporaryLake

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DAY = Hour.parse("2026-03-10T00")
HOURS = {
    description: DAY.plus(n)
    for n, description in enumerate([*FINE_VOLUMES, *(fault.description for fault in VOLUME_FAULTS)])
}
TOO_FEW_DAYS = DAY.plus(len(HOURS))
END = TOO_FEW_DAYS.plus(1)


@pytest.fixture(scope="module")
def judged(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    """Hours of one day, some with faults, and the days before; only the one day is judged."""
    lake = make_lake("volume")
    with lake.settings.sources_file.open("a", encoding="utf-8") as file:
        file.write(RULE_OF_TESTS)
    lines = FINE_VOLUMES | {fault.description: fault.lines for fault in VOLUME_FAULTS if fault.lines}
    for description, hour in HOURS.items():
        lake.land(str(hour), {"a.json": b"".join(lines[description](hour))})
    lake.land(str(TOO_FEW_DAYS), {"a.json": b"".join(volume_lines(TOO_FEW_DAYS))})
    for job in ("ingest", "aggregate"):
        lake.run(job, str(DAY), str(END))
    _add_days_before(lake)
    lake.run("validate", str(DAY), str(END))
    return lake


def _add_days_before(lake: TemporaryLake) -> None:
    """Eight days of clean hours, of 200 to 209 clicks, 100 visitors and a bad line; before them one without files.

    Of the last of the hours there are six days only.
    """
    clicks, hour = "200 + id % 4 * 3", "concat(log_date, 'T', lpad(log_hour, 2, '0'))"
    changed = {
        INGEST_ACCOUNTING: {
            "lines": f"if(id = 9, 0, {clicks} + 1)", "quarantined": "1", "left_out": "0",
            "click_hours": f"array({hour})", "files": "if(id = 9, 0, 1)", "is_closed": "id < 9",
        },
        CLICKS_BY_COUNTRY_HOURLY: {"click_count": clicks, "visitor_count": f"{USUAL_VISITORS}"},
    }  # fmt: skip
    for table, values in changed.items():
        date, hour_of_day = table.partitioned_by[-2:]
        path = str(lake.settings.lake / table.name)
        rows = lake.spark.read.format("delta").load(path).crossJoin(lake.spark.range(1, 10))
        rows = rows.where(f"{hour_of_day} <> {TOO_FEW_DAYS.hour} OR id < 7")
        for column, value in {date: f"date_sub({date}, CAST(id AS INT))", **values}.items():
            rows = rows.withColumn(column, F.expr(value).cast(rows.schema[column].dataType))
        rows.select(*table.column_names).write.format("delta").mode("append").save(path)


def _failed(lake: TemporaryLake, hour: Hour) -> dict[str, dict[str, Any]]:
    """What failed in an hour, but for what is about the shape of so small a lake."""
    return {
        f"{row['suite']}.{row['check_id']}": row
        for row in lake.rows(QUALITY_RESULTS)
        if row["hour"] == str(hour) and row["outcome"] == "fail" and row["suite"] != "load"
        if row["check_id"] != "top_url_share"
    }


def _of_hour(lake: TemporaryLake, hour: Hour) -> list[dict[str, Any]]:
    return [row for row in lake.rows(QUALITY_RESULTS) if row["suite"] == "volume" and row["hour"] == str(hour)]


@pytest.mark.parametrize("fault", VOLUME_FAULTS, ids=lambda fault: fault.description)
def test_fault_is_warned_of_and_nothing_else(judged: TemporaryLake, fault: Fault) -> None:
    failed = _failed(judged, HOURS[fault.description])
    assert set(failed) == {fault.check, *fault.also}
    assert failed[fault.check]["observed"].startswith(fault.observed)
    for name, row in failed.items():
        is_of_clicks = name in ("volume.clicks", "volume.visitors")
        assert row["severity"] == fault.severity
        assert row["partition"] == (row["hour"] if is_of_clicks else f"web {row['hour']}")
        assert row["source"] == (None if is_of_clicks else "web")


@pytest.mark.parametrize("description", FINE_VOLUMES)
def test_what_is_no_fault_passes_every_check(judged: TemporaryLake, description: str) -> None:
    assert _failed(judged, HOURS[description]) == {}
    outcomes = {row["check_id"]: row["outcome"] for row in _of_hour(judged, HOURS[description])}
    assert outcomes == dict.fromkeys(["clicks", "visitors", "lines", "quarantined_share", "left_out_share"], "pass")


def test_six_days_are_not_enough_to_judge_by(judged: TemporaryLake) -> None:
    rows = _of_hour(judged, TOO_FEW_DAYS)
    assert len(rows) == 5
    for row in rows:
        assert (row["outcome"], row["lowest"], row["highest"]) == ("not_enough_history", None, None)
        assert "; 6 of the 7 days that a median needs; 9 Mar " in row["observed"]


def test_bounds_are_in_the_unit_of_what_was_found(judged: TemporaryLake) -> None:
    half = _failed(judged, HOURS["half the volume"])["volume.clicks"]
    assert (half["observed_value"], half["checked_table"]) == (100, "clicks_by_country_hourly")
    assert half["lowest"] == pytest.approx(204.5 - 3.5 * 0.05 * 204.5)
    assert half["highest"] == pytest.approx(204.5 + 3.5 * 0.05 * 204.5)
    share = _failed(judged, HOURS["30 of 230 lines in quarantine, where one of 200 is usual"])[
        "volume.quarantined_share"
    ]
    assert (share["observed_value"], share["lowest"]) == (30 / 230, None)


def test_a_critical_bound_holds_what_is_far_off(judged: TemporaryLake) -> None:
    """The same lake, judged again with a bound that half the volume is beyond."""
    file = judged.settings.pipeline_file
    file.write_text(file.read_text(encoding="utf-8") + "\n[volume]\ncritical_deviations = 6\n", encoding="utf-8")
    strict = TemporaryLake(judged.spark, replace(judged.settings))
    half, fine = str(HOURS["half the volume"]), str(HOURS["the usual"])
    with pytest.raises(QualityError, match=f"critical: {half}: expected clicks within 6 deviations"):
        strict.run("validate", half)
    assert "0 click hours published, 1 held at their last good version" in strict.run("publish", half)[0]
    too_few = str(TOO_FEW_DAYS)
    for hour in (fine, too_few):
        strict.run("validate", hour)
        assert "1 click hours published" in strict.run("publish", hour)[0]

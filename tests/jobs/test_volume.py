"""Hours with too few or too many clicks, visitors, lines or quarantined lines are told from what is usual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pyspark.sql import functions as F

from include.errors import QualityError
from include.log_hours import Hour
from include.tables import CLICKS_BY_COUNTRY_HOURLY, INGEST_ACCOUNTING, QUALITY_RESULTS
from tests.jobs.temporary_lake import TemporaryLake, click

pytestmark = pytest.mark.spark

DAY = Hour.parse("2026-03-10T00")
CLEAN, TOO_FEW_DAYS = 0, 7
END = str(DAY.plus(8))


@dataclass(frozen=True)
class Fault:
    """What is planted in an hour of the last day, and the checks that must warn of it there."""

    fault: str
    lines: Callable[[str], list[bytes]]
    of_click_hour: frozenset[str] = frozenset()
    of_log_hour: frozenset[str] = frozenset()


def _lines(hour: str, clicks: int = 200, visitors: int = 100, bad: int = 1) -> list[bytes]:
    good = [click(f"{hour}-{n}", f"{hour}:{n % 60:02d}:00Z", visitor_id=f"v{n % visitors}") for n in range(clicks)]
    return good + [b"nonsense\n"] * bad


#: By the hour of the day that they are planted in.
FAULTS: dict[int, Fault] = {
    1: Fault(
        "half the volume", lambda hour: _lines(hour, 100, 50), frozenset({"clicks", "visitors"}), frozenset({"lines"})
    ),
    2: Fault(
        "a doubled volume", lambda hour: _lines(hour, 400, 200), frozenset({"clicks", "visitors"}), frozenset({"lines"})
    ),
    3: Fault("half the visitors, as many clicks", lambda hour: _lines(hour, 200, 50), frozenset({"visitors"})),
    4: Fault(
        "a quarantined share out of its usual",
        lambda hour: _lines(hour, 200, bad=30),
        of_log_hour=frozenset({"quarantined_share"}),
    ),
    5: Fault("no lines at all", lambda hour: [], of_log_hour=frozenset({"lines"})),
    6: Fault("a few more of everything than usual", lambda hour: _lines(hour, 215, 107, bad=4)),
}


@pytest.fixture(scope="module")
def judged(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    """Hours of one day, some with faults, and the days before; only the one day is judged."""
    lake = make_lake("volume")
    hours = {hour_of_day: str(DAY.plus(hour_of_day)) for hour_of_day in (CLEAN, *FAULTS, TOO_FEW_DAYS)}
    for hour_of_day, hour in hours.items():
        lines = FAULTS[hour_of_day].lines(hour) if hour_of_day in FAULTS else _lines(hour)
        lake.land(hour, {"a.json": b"".join(lines)})
    for job in ("ingest", "aggregate"):
        lake.run(job, str(DAY), END)
    _add_days_before(lake)
    lake.run("validate", str(DAY), END)
    return lake


def _add_days_before(lake: TemporaryLake) -> None:
    """Eight days of clean hours, of 200 to 209 clicks, 100 visitors and a bad line; before them one without files.

    Of the last of the hours there are six days only.
    """
    clicks, hour = "200 + id % 4 * 3", "concat(log_date, 'T', lpad(log_hour, 2, '0'))"
    changed = {
        INGEST_ACCOUNTING: {
            "lines": f"{clicks} + 1", "quarantined": "1", "click_hours": f"array({hour})",
            "files": "if(id = 9, 0, 1)", "is_closed": "id < 9",
        },
        CLICKS_BY_COUNTRY_HOURLY: {"click_count": clicks, "visitor_count": "100"},
    }  # fmt: skip
    for table, values in changed.items():
        date, hour_of_day = table.partitioned_by[-2:]
        path = str(lake.settings.lake / table.name)
        rows = lake.spark.read.format("delta").load(path).crossJoin(lake.spark.range(1, 10))
        rows = rows.where(f"{hour_of_day} <> {TOO_FEW_DAYS} OR id < 7")
        for column, value in {date: f"date_sub({date}, CAST(id AS INT))", **values}.items():
            rows = rows.withColumn(column, F.expr(value).cast(rows.schema[column].dataType))
        rows.select(*table.column_names).write.format("delta").mode("append").save(path)


def _rows(lake: TemporaryLake) -> list[dict[str, Any]]:
    return [row for row in lake.rows(QUALITY_RESULTS) if row["suite"] == "volume"]


def test_each_fault_is_warned_of_and_nothing_else(judged: TemporaryLake) -> None:
    rows = _rows(judged)
    assert {row["severity"] for row in rows} == {"warning"}
    failed = {(row["partition"], row["check_id"]) for row in rows if row["outcome"] == "fail"}
    expected = set()
    for hour_of_day, fault in FAULTS.items():
        hour = str(DAY.plus(hour_of_day))
        expected |= {(hour, check) for check in fault.of_click_hour}
        expected |= {(f"web {hour}", check) for check in fault.of_log_hour}
    assert failed == expected


def test_clean_hour_passes_every_check(judged: TemporaryLake) -> None:
    hour = str(DAY.plus(CLEAN))
    of_hour = {row["check_id"]: row["outcome"] for row in _rows(judged) if row["hour"] == hour}
    assert of_hour == dict.fromkeys(["clicks", "visitors", "lines", "quarantined_share"], "pass")


def test_six_days_are_not_enough_to_judge_by(judged: TemporaryLake) -> None:
    hour = str(DAY.plus(TOO_FEW_DAYS))
    of_hour = [row for row in _rows(judged) if row["hour"] == hour]
    assert len(of_hour) == 4
    for row in of_hour:
        assert (row["outcome"], row["lowest"], row["highest"]) == ("not_enough_history", None, None)
        assert "; 6 of the 7 days that a median needs; 9 Mar " in row["observed"]


def test_bounds_and_history_are_told(judged: TemporaryLake) -> None:
    (half,) = [row for row in _rows(judged) if row["partition"] == str(DAY.plus(1)) and row["check_id"] == "clicks"]
    # 203, 206, 209, 200, 203, 206, 209, 200: the median is 204.5, the distances from it 1.5 and 4.5, four times each;
    # the scaled MAD is 4.4, and one twentieth of the median is more.
    assert half["observed"] == (
        "clicks = 100; median of 8 days 204, expected 169 to 240; 9 Mar 203, 8 Mar 206, 7 Mar 209, 6 Mar 200, "
        "5 Mar 203, 4 Mar 206, 3 Mar 209, 2 Mar 200"
    )
    assert (half["observed_value"], half["checked_table"]) == (100, "clicks_by_country_hourly")
    assert half["lowest"] == pytest.approx(204.5 - 3.5 * 0.05 * 204.5)
    assert half["highest"] == pytest.approx(204.5 + 3.5 * 0.05 * 204.5)
    (share,) = [row for row in _rows(judged) if row["check_id"] == "quarantined_share" and row["outcome"] == "fail"]
    assert share["observed"].startswith("quarantined_share = 13.04%; median of 8 days 0.49%, expected at most 5.05%; ")
    assert (share["source"], share["lowest"]) == ("web", None)


def test_a_critical_bound_holds_what_is_far_off(judged: TemporaryLake) -> None:
    """The same lake, judged anew with a bound that half the volume is beyond."""
    file = judged.settings.pipeline_file
    file.write_text(file.read_text(encoding="utf-8") + "\n[volume]\ncritical_deviations = 6\n", encoding="utf-8")
    strict = TemporaryLake(judged.spark, replace(judged.settings))
    half, fine = str(DAY.plus(1)), str(DAY.plus(6))
    with pytest.raises(QualityError, match=f"critical: {half}: expected clicks within 6 deviations"):
        strict.run("validate", half)
    with pytest.raises(QualityError, match=f"nothing is published: {half}: expected clicks within 6"):
        strict.run("publish", half)
    strict.run("validate", fine)
    assert "1 click hours published" in strict.run("publish", fine)[0]

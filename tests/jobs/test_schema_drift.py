"""Fields of a JSON source that are new, gone or of another type are told from those of its earlier log hours."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from include.tables import INGEST_ACCOUNTING, QUALITY_RESULTS
from tests.jobs.temporary_lake import TemporaryLake

pytestmark = pytest.mark.spark

DAY = "2026-03-01"
LINES = 40


@dataclass(frozen=True)
class Fault:
    """How an hour's lines differ from the usual ones, and what must be said by the checks that fail."""

    fault: str
    change: Callable[[dict[str, Any], int], dict[str, Any]]
    said: dict[str, str] = field(default_factory=dict)


def _without(record: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in names}


#: By the log hour that they are planted in. Each is of fields of its own, so that none is history of another.
FAULTS: dict[int, Fault] = {
    6: Fault("nothing", lambda record, n: record),
    7: Fault(
        "a new field",
        lambda record, n: record | {"basket": {"total": 12.5 + n}},
        {
            "no_new_fields": "2 fields; basket: object in 40 of 40 sampled lines; "
            "basket.total: number in 40 of 40 sampled lines, such as 12.5; of 14 fields in 40 sampled lines; "
            "7 earlier log hours"
        },
    ),
    8: Fault(
        "a field renamed",
        lambda record, n: _without(record, "referrer") | {"referer": record["referrer"]},
        {
            "no_new_fields": "1 field; referer: string in 40 of 40 sampled lines, such as http://else.test/; of 12 "
            "fields in 40 sampled lines; 8 earlier log hours",
            "no_fields_gone": "1 field; referrer (mapped: referrer): in none of 40 sampled lines, before in 100%, and "
            "the clicks are without it; of 12 fields in 40 sampled lines; 8 earlier log hours",
        },
    ),
    9: Fault(
        "a type changed",
        lambda record, n: record | {"status": f"{record['status']} OK"},
        {
            "no_types_changed": "1 field; status (mapped: status): string in 40 of 40 sampled lines, such as 200 OK; "
            "before integer; of 12 fields in 40 sampled lines; 9 earlier log hours"
        },
    ),
    10: Fault(
        "integers become numbers with a point",
        lambda record, n: record | {"duration": 0.5 + n},
        {
            "no_types_changed": "1 field; duration: number in 40 of 40 sampled lines, such as 0.5; before integer; "
            "of 12 fields in 40 sampled lines; 10 earlier log hours"
        },
    ),
    11: Fault(
        "an object becomes a text",
        lambda record, n: record | {"geo": "DE"},
        {
            "no_fields_gone": "1 field; geo.country (mapped: country): in none of 40 sampled lines, before in 100%, "
            "and the clicks are without it; of 11 fields in 40 sampled lines; 11 earlier log hours",
            "no_types_changed": "1 field; geo: string in 40 of 40 sampled lines, such as DE; before object; of 11 "
            "fields in 40 sampled lines; 11 earlier log hours",
        },
    ),
    12: Fault(
        "a field null in all lines",
        lambda record, n: record | {"campaign": None},
        {
            "no_fields_gone": "1 field; campaign: null in all of 40 sampled lines, before in 100%; of 12 fields in "
            "40 sampled lines; 12 earlier log hours"
        },
    ),
    13: Fault("a field null in some lines", lambda record, n: record | {"campaign": "spring" if n % 2 else None}),
    14: Fault("numbers with a point become whole", lambda record, n: record | {"ratio": 1}),
    15: Fault("a field that few lines ever had is in none", lambda record, n: _without(record, "seldom")),
    16: Fault("an unwatched field", lambda record, n: record | {"params": {f"p{n}": n}}),
    17: Fault("no lines at all", lambda record, n: {}),
}


def _record(hour: int, n: int) -> dict[str, Any]:
    record = {
        "event_id": f"{hour}-{n}", "ts": f"{DAY}T{hour:02d}:{n:02d}:00Z", "url": "http://shop.test/",
        "geo": {"country": "DE"}, "referrer": "http://else.test/", "user_agent": "Mozilla/5.0", "status": 200,
        "campaign": "spring", "duration": 3, "ratio": 0.25,
    }  # fmt: skip
    return record | ({"seldom": "x"} if n % 5 == 0 else {})


@pytest.fixture(scope="module")
def judged(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    """Hours of one day, in one run: at first clean ones, then those with faults."""
    lake = make_lake("drift")
    file = lake.settings.sources_file
    sources = file.read_text(encoding="utf-8")
    assert 'format = "json"\n' in sources
    unwatched = 'format = "json"\nunwatched_fields = ["params"]\n'
    file.write_text(sources.replace('format = "json"\n', unwatched, 1), encoding="utf-8")
    for hour in range(18):
        fault = FAULTS.get(hour, FAULTS[6])
        records = [fault.change(_record(hour, n), n) for n in range(LINES)]
        content = "".join(json.dumps(record) + "\n" for record in records if record)
        lake.land(f"{DAY}T{hour:02d}", {"a.json": content.encode()})
    for job in ("ingest", "aggregate", "validate"):
        lake.run(job, f"{DAY}T00", f"{DAY}T18")
    return lake


def _rows(lake: TemporaryLake) -> list[dict[str, Any]]:
    return [row for row in lake.rows(QUALITY_RESULTS) if row["suite"] == "schema_drift"]


def test_each_fault_is_warned_of_and_nothing_else(judged: TemporaryLake) -> None:
    failed = {(row["partition"], row["check_id"]): row["observed"] for row in _rows(judged) if row["outcome"] == "fail"}
    expected = {
        (f"web {DAY}T{hour:02d}", check): said for hour, fault in FAULTS.items() for check, said in fault.said.items()
    }
    assert failed == expected
    assert {row["severity"] for row in _rows(judged)} == {"warning"}


def test_examples_are_kept_one_by_one(judged: TemporaryLake) -> None:
    (row,) = [row for row in _rows(judged) if row["hour"] == f"{DAY}T07" and row["outcome"] == "fail"]
    assert row["examples"] == [
        "basket: object in 40 of 40 sampled lines",
        "basket.total: number in 40 of 40 sampled lines, such as 12.5",
    ]
    assert (row["observed_value"], row["lowest"], row["highest"]) == (2, 0, 0)


def test_first_hours_are_not_judged_and_say_so(judged: TemporaryLake) -> None:
    of_hours = [row for row in _rows(judged) if row["hour"] < f"{DAY}T06"]
    assert len(of_hours) == 6 * 3
    assert {row["outcome"] for row in of_hours} == {"not_enough_history"}
    (third,) = {row["observed"] for row in of_hours if row["hour"] == f"{DAY}T02"}
    assert third == "12 fields in 40 sampled lines; 2 earlier log hours of the 6 needed"


def test_clean_hour_passes_and_an_empty_one_has_nothing_to_judge(judged: TemporaryLake) -> None:
    clean = [row for row in _rows(judged) if row["hour"] == f"{DAY}T06"]
    assert [row["outcome"] for row in clean] == ["pass"] * 3
    assert {row["observed"] for row in clean} == {"none; of 12 fields in 40 sampled lines; 6 earlier log hours"}
    assert [row for row in _rows(judged) if row["hour"] == f"{DAY}T17"] == []


def test_unwatched_fields_are_not_in_the_accounting(judged: TemporaryLake) -> None:
    account = judged.accounting()[f"{DAY}T16"]
    assert account["sampled_lines"] == LINES
    assert not [found for found in account["sampled_fields"] if found["path"].startswith("params")]


def test_access_logs_have_no_fields(lake: TemporaryLake) -> None:
    hour = f"{DAY}T05"
    line = b'192.0.2.1 - - [01/Mar/2026:05:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "Mozilla/5.0"\n'
    lake.land(hour, {"a.log": line}, source="access")
    lake.run_all(hour, source="access")
    account = lake.accounting()[hour]
    assert (account["lines"], account["sampled_lines"], account["sampled_fields"]) == (1, None, None)
    assert _rows(lake) == []


def test_a_lake_of_an_earlier_version_is_judged_and_gets_the_columns(judged: TemporaryLake) -> None:
    """Its accounting lacks the columns: validated as it is, they are null; ingested again, they are there."""
    path = str(judged.settings.lake / INGEST_ACCOUNTING.name)
    former = judged.spark.read.format("delta").load(path).drop("sampled_lines", "sampled_fields")
    former.write.format("delta").mode("overwrite").option("overwriteSchema", True).save(path)
    assert "sampled_lines" not in judged.accounting()[f"{DAY}T06"]
    judged.run("validate", f"{DAY}T06")
    assert judged.accounting()[f"{DAY}T06"]["sampled_lines"] is None
    judged.run("ingest", f"{DAY}T06")
    assert judged.accounting()[f"{DAY}T06"]["sampled_lines"] == LINES
    assert judged.accounting()[f"{DAY}T05"]["sampled_lines"] is None

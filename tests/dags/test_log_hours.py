"""Which log hours a run of clicks_hourly works on."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import Variable
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from deltalake import write_deltalake

from dags.tasks import log_hours
from include.holds import HELD, PUBLISHED, event_row
from include.hours import Hour, HourRange
from include.journal import Act
from include.landing import SUCCESS, as_landed_files, hour_folder, look_at
from include.settings import Settings
from include.sources import load_sources
from include.tables import INGEST_ACCOUNTING, JOURNAL, UNFINISHED_INGESTS, Table
from include.unpublished import files_landed_since
from spark_jobs.lake.declared import as_arrow
from tests.dags.test_dags import REPOSITORY, dags_of

SOURCES = """
[sources.web]
format = "json"
[sources.web.fields]
time = "ts"
url = "url"
"""
FORM = {"source": "web", "from": None, "to": None}
FIRST = Hour.parse("2026-03-01T00")
LONG_AGO = datetime(2026, 3, 5, tzinfo=UTC)


def hours_of(first: int, end: int) -> dict[str, str]:
    return {"from": str(FIRST.plus(first)), "to": str(FIRST.plus(end))}


def run_of(partition: str | None = None, run_type: str = "manual") -> Any:
    return SimpleNamespace(partition_key=partition, run_type=run_type)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sources.toml").write_text(SOURCES)
    monkeypatch.setenv("CLICKMILL_SOURCES", str(tmp_path / "sources.toml"))
    monkeypatch.setenv("CLICKMILL_HOME", str(tmp_path))
    (tmp_path / "pipeline.toml").touch()
    monkeypatch.setenv("CLICKMILL_PIPELINE", str(tmp_path / "pipeline.toml"))
    return tmp_path


def land(home: Path, *numbers: int) -> None:
    for number in numbers:
        folder = hour_folder(home / "landing", "web", FIRST.plus(number))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SUCCESS).touch()


def store(home: Path, table: Table, row: dict[str, Any]) -> None:
    complete = dict.fromkeys(table.column_names) | row
    rows, partitions = as_arrow(table, [complete]), list(table.partitioned_by) or None
    write_deltalake(home / "lake" / table.name, rows, mode="append", partition_by=partitions)


def ingest(home: Path, number: int, at: datetime, *touched: int) -> None:
    """As ingest_clicks leaves it, as far as it matters here."""
    hour = FIRST.plus(number)
    row = {
        "source": "web",
        "log_date": hour.day,
        "log_hour": hour.hour,
        "click_hours": [str(FIRST.plus(offset)) for offset in touched],
        "ingested_at": at,
        "landed_files": as_landed_files(look_at(home / "landing", "web", hour).listed),
    }
    store(home, INGEST_ACCOUNTING, row)


def ingest_with_lines(home: Path, number: int) -> None:
    hour = FIRST.plus(number)
    row = {"source": "web", "log_date": hour.day, "log_hour": hour.hour, "lines": 5, "click_hours": []}
    store(home, INGEST_ACCOUNTING, row | {"ingested_at": LONG_AGO})


def say(home: Path, number: int, at: datetime, outcome: str = PUBLISHED) -> None:
    store(home, JOURNAL, event_row(Act("run", "publish_clicks"), at, FIRST.plus(number), outcome, "so"))


def test_the_form_wins_then_the_partition(home: Path) -> None:
    land(home, 0, 1, 2)
    asked = FORM | {"from": "2026-03-01T00:00:00Z", "to": "2026-03-01T02:00:00Z"}
    assert log_hours.landed(asked, run_of("2026-03-01T07")) == hours_of(0, 2)
    assert log_hours.landed(FORM, run_of("2026-03-01T01", "backfill")) == hours_of(1, 2)


def test_a_run_waits_until_all_its_hours_are_closed(home: Path) -> None:
    now = Hour.containing(datetime.now(UTC))
    assert log_hours.landed(FORM, run_of(str(now), "backfill")) is None
    folder = hour_folder(home / "landing", "web", now)
    folder.mkdir(parents=True)
    (folder / SUCCESS).touch()
    assert log_hours.landed(FORM, run_of(str(now), "backfill")) == {"from": str(now), "to": str(now.plus(1))}


def test_without_hours_the_newest_that_are_not_published_are_run(home: Path) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    land(home, 0, 30, 31, 32, 33)
    assert log_hours.landed(FORM, run_of()) == hours_of(30, 34), "the newest without a gap of more than a day"
    for number in (30, 31, 32, 33):
        ingest(home, number, later, number)
    assert log_hours.landed(FORM, run_of()) == hours_of(30, 34), "they are not published"
    for number in (30, 31, 33):
        say(home, number, later + timedelta(seconds=1), HELD if number == 31 else PUBLISHED)
    assert log_hours.landed(FORM, run_of()) == hours_of(32, 33)
    say(home, 32, later - timedelta(seconds=1))
    assert log_hours.landed(FORM, run_of()) == hours_of(32, 33), "published before it was ingested again"
    say(home, 32, later)
    assert log_hours.landed(FORM, run_of()) == hours_of(0, 1)


def test_hours_closed_again_or_half_ingested_are_run_again(home: Path) -> None:
    land(home, 0, 1, 2)
    for number in (0, 1, 2):
        ingest(home, number, datetime.now(UTC) + timedelta(hours=1))
    with pytest.raises(AirflowSkipException):
        log_hours.landed(FORM, run_of())
    mark = hour_folder(home / "landing", "web", FIRST) / SUCCESS
    os.utime(mark, (0, 0))  # closed again, by a host whose clock is behind
    assert log_hours.landed(FORM, run_of()) == hours_of(0, 1)
    hour = FIRST.plus(2)
    begun = {"source": "web", "log_date": hour.day, "log_hour": hour.hour, "began_at": LONG_AGO}
    store(home, UNFINISHED_INGESTS, begun | {"click_hours": [], "changed_later": []})
    assert log_hours.landed(FORM, run_of()) == hours_of(0, 3), "with what lies between"


def test_files_of_any_date_that_land_after_the_ingest_are_run_again(home: Path) -> None:
    land(home, 0, 1, 2, 4)
    for number in (0, 1, 2, 4):
        ingest(home, number, datetime.now(UTC), number)
        say(home, number, datetime.now(UTC))
    folders = [hour_folder(home / "landing", "web", FIRST.plus(number)) for number in range(5)]
    for folder, names in (
        (folders[0], [".b.json.part", "_b"]),
        (folders[1], ["b.json", "c.json"]),
        (folders[4], ["d"]),
    ):
        for name in names:
            (folder / name).write_text("{}")
            os.utime(folder / name, (0, 0))
    (folders[2] / SUCCESS).unlink()
    web = load_sources(Settings.from_environment())["web"]
    since = {FIRST.plus(1): ["b.json", "c.json"], FIRST.plus(4): ["d"]}
    assert files_landed_since(Settings.from_environment(), web) == since
    assert log_hours.landed(FORM, run_of()) == hours_of(1, 5), "with what lies between"
    scheduled = run_of("2026-03-01T06", "scheduled")
    assert log_hours.late_runs(FORM, run_of("2026-03-01T06")) == []
    assert log_hours.late_runs(FORM, scheduled) == [
        {
            "trigger_run_id": f"late_files_2026-03-01T06_web_{FIRST.plus(number)}",
            "conf": {"source": "web", "from": f"{FIRST.plus(number)}:00:00Z", "to": f"{FIRST.plus(number + 1)}:00:00Z"},
        }
        for number in (1, 4)
    ]
    (home / "pipeline.toml").write_text("[late_files]\nwatched_hours = 20")
    assert files_landed_since(Settings.from_environment(), web) == {FIRST.plus(4): ["d"]}, "the newest of a day of 24"
    (home / "pipeline.toml").write_text("[late_files]\nwatched_hours = 0")
    assert files_landed_since(Settings.from_environment(), web) == {}


def test_only_if_it_is_asked_for_late_files_are_run_by_themselves(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "pipeline.toml").write_text("[late_files]\nrun_again = true")
    late = {"find_late_files", "run_late_files"}
    for file, expected in ((REPOSITORY / "config" / "pipeline.toml", set()), (home / "pipeline.toml", late)):
        monkeypatch.setenv("CLICKMILL_PIPELINE", str(file))
        (dag,) = dags_of(REPOSITORY / "dags" / "clicks_hourly.py")
        assert late & set(dag.task_ids) == expected
    for run in log_hours.late_runs(FORM, run_of("2026-03-01T06", "scheduled")):
        assert dag.params.get_param("from").resolve(run["conf"]["from"])


def test_when_nothing_waits_the_run_is_skipped_and_says_so(home: Path) -> None:
    with pytest.raises(AirflowSkipException, match="nothing to do: every hour that landed for web is published"):
        log_hours.landed(FORM, run_of())


def form_of(first: int, end: int) -> dict[str, Any]:
    return FORM | {name: f"{hour}:00:00Z" for name, hour in hours_of(first, end).items()}


def test_hours_that_a_person_asks_for_and_never_landed_are_no_run(home: Path) -> None:
    land(home, 3, 4, 7)
    with pytest.raises(AirflowFailException) as refused:
        log_hours.landed(form_of(10, 13), run_of())
    assert str(refused.value) == (
        "nothing has landed for web 2026-03-01T10 to 2026-03-01T12; newest landed: 2026-03-01T07; nothing was run"
    )
    with pytest.raises(AirflowFailException, match="nothing has landed for web 2026-03-01T05; newest landed"):
        log_hours.landed(form_of(5, 6), run_of())
    with pytest.raises(AirflowSkipException, match="nothing has landed for web 2026-03-01T02; newest landed"):
        log_hours.landed(FORM, run_of(str(FIRST.plus(2)), "backfill"))
    assert log_hours.landed(FORM, run_of(str(FIRST.plus(5)), "backfill")) == hours_of(5, 6), "a gap is worth a warning"


def test_of_hours_that_a_person_asks_for_those_between_landed_ones_are_run(home: Path) -> None:
    land(home, 3, 4, 7)
    assert log_hours.landed(form_of(0, 24), run_of()) == hours_of(3, 8)
    ingest_with_lines(home, 9)
    assert log_hours.landed(form_of(0, 24), run_of()) == hours_of(3, 10), "its files are gone: that is to be said"


def test_nothing_at_all_has_landed(home: Path) -> None:
    with pytest.raises(AirflowFailException, match="for web 2026-03-01T00; nothing has landed at all"):
        log_hours.landed(form_of(0, 1), run_of())


def test_a_scheduled_hour_without_a_log_is_run_once_its_grace_time_is_over(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Variable, "get", lambda *_, **__: {})
    monkeypatch.setattr(Variable, "set", lambda *_, **__: None)
    assert log_hours.landed(FORM, run_of(str(FIRST), "scheduled")) == hours_of(0, 1)


@pytest.mark.parametrize(
    ("known", "first"),
    [
        ({}, "2026-03-08T05"),
        ({"2026-03-08T04": "2026-03-08T04"}, "2026-03-08T05"),
        ({"2026-03-01T04": "2026-03-01T04"}, "2026-03-01T05"),
        ({"2025-03-01T04": "2025-03-01T04"}, "2026-02-05T06"),
        ({"2026-03-08T05": "2026-03-01T05", "2026-03-08T07": "2026-03-08T06"}, "2026-03-01T05"),
        ({"2026-03-08T07": "2026-03-08T06"}, "2026-03-08T05"),
    ],
    ids=["first run", "hour after hour", "after a week", "after a year: a month", "asked again", "older than known"],
)
def test_a_scheduled_run_takes_the_hours_along_that_had_no_run(known: dict[str, str], first: str) -> None:
    hour = Hour.parse("2026-03-08T05")
    assert log_hours.since_the_last_run(hour, known) == HourRange(Hour.parse(first), hour.plus(1))


def test_what_scheduled_runs_worked_on_is_remembered(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored: dict[str, Any] = {}

    def get(name: str, default: Any, deserialize_json: bool) -> Any:
        return stored.get(name, default)

    def set_(name: str, value: Any, serialize_json: bool) -> None:
        stored[name] = value

    monkeypatch.setattr(Variable, "get", get)
    monkeypatch.setattr(Variable, "set", set_)
    land(home, *range(200))
    ran: list[str] = []
    for number, expected in ((0, (0, 1)), (1, (1, 2)), (100, (2, 101)), (101, (101, 102))):
        partition = str(FIRST.plus(number))
        for _ in range(2):
            assert log_hours.landed(FORM, run_of(partition, "scheduled")) == hours_of(*expected)
        ran.append(partition)
    assert list(stored[log_hours.FIRST_HOURS]) == ran


def test_the_tasks_after_it_work_on_what_was_chosen(home: Path) -> None:
    task = SimpleNamespace(xcom_pull=lambda task_ids: hours_of(3, 9) if task_ids == "wait_for_landing" else None)
    assert log_hours.chosen(FORM, run_of(), task).log_hours == HourRange(FIRST.plus(3), FIRST.plus(9))
    nothing = SimpleNamespace(xcom_pull=lambda task_ids: None)
    assert log_hours.chosen(FORM, run_of("2026-03-01T05"), nothing).log_hours == HourRange.single(FIRST.plus(5))
    with pytest.raises(AirflowFailException, match="this run has no partition: fill in from and to"):
        log_hours.chosen(FORM, run_of(), nothing)


@pytest.mark.parametrize("dag_id", ["clicks_hourly", "backfill_clicks"])
@pytest.mark.parametrize("text", ["2026-03-01T05:00:00Z", "2026-03-01T05:00+02:00", "2026-03-01T05:00:00.000Z"])
def test_the_form_takes_full_hours(dag_id: str, text: str) -> None:
    (dag,) = dags_of(REPOSITORY / "dags" / f"{dag_id}.py")
    assert dag.params.get_param("from").resolve(text) == text


@pytest.mark.parametrize(
    ("field", "text", "expected"),
    [
        ("from", "2026-03-01T08:30:00.000Z", "2026-03-01T08 or 2026-03-01T09"),
        ("to", "2026-03-01T23:00:01Z", "2026-03-01T23 or 2026-03-02T00"),
        ("from", "2026-03-01T08:00:00+05:30", "2026-03-01T02 or 2026-03-01T03"),
        ("to", "yesterday", "UTC such as 2026-03-01T05"),
        ("from", "2026-03-01", "UTC such as 2026-03-01T05"),
    ],
)
def test_what_is_no_full_hour_ends_the_run_with_what_was_expected(
    home: Path, field: str, text: str, expected: str
) -> None:
    land(home, 0)
    asked = FORM | {"from": "2026-03-01T00:00:00Z", "to": "2026-03-01T12:00:00Z"} | {field: text}
    with pytest.raises(AirflowFailException) as refused:
        log_hours.landed(asked, run_of())
    assert str(refused.value).endswith(f": '{text}'; expected {expected}")

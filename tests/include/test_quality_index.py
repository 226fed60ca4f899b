from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from include import quality_index
from include.holds import event_row
from include.hours import Hour, HourRange
from include.quality_index import Counts, catch_up, open_index
from include.settings import Settings
from include.tables import JOURNAL, QUALITY_RESULTS
from spark_jobs.hours.quality_results import append_results
from spark_jobs.lake.journal import signed_act
from spark_jobs.lake.lake import Lake
from tests.support.quality_rows import Event, Row, append, event, validated_hours

HOUR = "2026-03-01T05"
FIRST = Hour.parse("2026-03-01T00")
ALL = HourRange(FIRST, FIRST.plus(48))
LATER = datetime(2026, 3, 1, 9, tzinfo=UTC)


def counts_of(settings: Settings, **filters: str) -> dict[tuple[str, str], Counts]:
    with open_index(settings) as index:
        return index.counts(ALL, **filters)  # type: ignore[arg-type]


def results(rows: Iterable[Row | Event]) -> list[Row]:
    return [row for row in rows if isinstance(row, Row)]


def content(settings: Settings) -> dict[str, list[tuple[Any, ...]]]:
    """All that the index says; sentences by their text, the files' names left out."""
    catch_up(settings)
    connection = sqlite3.connect(settings.quality_index)
    try:
        sentences = dict(connection.execute("SELECT id, text FROM sentence"))
        tables = {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in ("verdict", "event")}
        tables["result"] = [
            (*row[:15], sentences[row[15]], sentences.get(row[16]), *row[17:])
            for row in connection.execute("SELECT * FROM result")
        ]
        return {table: sorted(rows, key=repr) for table, rows in tables.items()}
    finally:
        connection.close()


def test_an_empty_lake_has_an_empty_index(settings: Settings) -> None:
    with open_index(settings) as index:
        assert index.span() is None
        assert index.held() == []
        assert index.bad_hours() == []
        assert (index.sources(), index.tables(), index.suites()) == ([], [], [])


def test_counts_are_those_of_the_newest_run_of_each_partition(settings: Settings) -> None:
    """Against a count in plain Python over the same rows; every fifth hour is validated a second time."""
    events = validated_hours(FIRST, 40)
    runs = [results(run) for run in events]
    again = [
        [
            Row(**vars(row) | {"run_id": "again", "validated_at": row.validated_at + timedelta(days=9), "outcome": o})
            for row, o in zip(run, ["pass", "fail", "not_enough_history"] * 10, strict=False)
        ]
        for run in runs[::5]
    ]
    for run in [*events, *again]:
        append(settings.lake, run)
    newest: dict[tuple[str, str], str] = {}
    for row in sorted((row for run in [*runs, *again] for row in run), key=lambda row: row.validated_at):
        newest[row.suite, row.partition] = row.run_id
    expected: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for row in (row for run in [*runs, *again] for row in run):
        if newest[row.suite, row.partition] == row.run_id:
            place = {"pass": 0, "not_enough_history": 1}.get(row.outcome, 2 + (row.severity == "critical"))
            expected[row.suite, row.hour][place] += 1
    assert counts_of(settings) == {key: Counts(*values) for key, values in expected.items()}


def test_rows_in_any_order_and_in_any_commits_give_the_same_index(settings: Settings, tmp_path: Path) -> None:
    rows = [row for run in validated_hours(FIRST, 12) for row in run]
    rows += [Row(**vars(row) | {"run_id": "b", "validated_at": LATER, "outcome": "fail"}) for row in results(rows)[::3]]
    append(settings.lake, rows)
    random.Random(5).shuffle(rows)
    other = Settings(tmp_path / "other", settings.sources_file, settings.pipeline_file)
    for start in range(0, len(rows), 20):
        append(other.lake, rows[start : start + 20])
        if start % 3 == 0:
            catch_up(other)
    assert content(other) == content(settings)


def test_what_is_appended_is_seen_at_once(settings: Settings) -> None:
    append(settings.lake, [Row(outcome="fail")])
    assert counts_of(settings)["clicks", HOUR].state == "fail"
    append(settings.lake, [Row(run_id="run-2", validated_at=LATER)])
    assert counts_of(settings) == {("clicks", HOUR): Counts(passed=1)}


def test_a_check_that_is_gone_leaves_no_result_behind(settings: Settings) -> None:
    append(settings.lake, [Row(check_id="old", outcome="fail"), Row()])
    catch_up(settings)
    append(settings.lake, [Row(run_id="run-2", validated_at=LATER)])
    with open_index(settings) as index:
        assert [result.check_id for result in index.results(HOUR)] == ["no_event_id_twice"]
        assert [run.run_id for run in index.runs(HOUR)] == ["run-1", "run-2"]


@pytest.mark.parametrize("state", ["absent", "damaged", "older schema", "newer schema", "of another table"])
def test_an_index_that_cannot_be_trusted_is_rebuilt(settings: Settings, state: str) -> None:
    append(settings.lake, [Row(outcome="fail"), event(HOUR, "held", "twice")])
    expected = content(settings)
    file = settings.quality_index
    if state == "absent":
        file.unlink()
    elif state == "damaged":
        file.write_bytes(b"no database" * 1000)
    elif state == "of another table":
        shutil.rmtree(settings.lake)
        append(settings.lake, [Row(partition="gone 2026-03-01T05")])
        catch_up(settings)
        shutil.rmtree(settings.lake)
        append(settings.lake, [Row(outcome="fail"), event(HOUR, "held", "twice")])
    else:
        connection = sqlite3.connect(file)
        connection.execute("DELETE FROM event")
        connection.execute(f"PRAGMA user_version = {99 if state == 'newer schema' else 0}")
        connection.commit()
        connection.close()
    assert content(settings) == expected


def test_rows_that_were_pruned_from_the_table_leave_the_index(settings: Settings) -> None:
    append(settings.lake, [Row(partition="web 2025-01-01T00", hour="2025-01-01T00"), Row()])
    catch_up(settings)
    DeltaTable(settings.lake / QUALITY_RESULTS.name).delete("hour < '2026'")
    with open_index(settings) as index:
        assert [str(hour) for hour in cast(Any, index.span())] == [HOUR, HOUR]


def test_results_that_were_pruned_leave_the_events_and_the_other_way_round(settings: Settings) -> None:
    append(settings.lake, [Row(), event(HOUR, "held", "twice")])
    catch_up(settings)
    before = content(settings)
    for table, lost in ((QUALITY_RESULTS, ("verdict", "result")), (JOURNAL, ("event",))):
        DeltaTable(settings.lake / table.name).delete()
        before |= {name: [] for name in lost}
        assert content(settings) == before


def test_of_the_journal_only_what_became_of_click_hours_is_taken_in(settings: Settings) -> None:
    lake = Lake(cast(SparkSession, None), settings)
    with signed_act(lake, "decide_held", f"{HOUR}: publish", "Ada", "known fault") as signed:
        hour, moment = Hour.parse(HOUR), datetime.now(UTC)
        signed.decide([event_row(signed.act, moment, hour, "published_anyway", "known fault", actor=signed.act.actor)])
        connection = sqlite3.connect(settings.quality_index)
        assert connection.execute("SELECT hour, outcome FROM event").fetchall() == [(HOUR, "published_anyway")]
        connection.close()
    with open_index(settings) as index:
        (decided,) = index.events(HOUR)
        assert (decided.actor, decided.because, decided.answered_at) == ("Ada", "known fault", decided.at)
        assert (decided.findings, decided.act_id) == ((), signed.act.id)


def test_a_home_may_have_any_name(settings: Settings, tmp_path: Path) -> None:
    odd = Settings(tmp_path / "a home, with ü & 100", settings.sources_file, settings.pipeline_file)
    append(odd.lake, [Row()])
    assert counts_of(odd) == {("clicks", HOUR): Counts(passed=1)}


def test_it_is_its_owners_alone(settings: Settings) -> None:
    before = os.umask(0)
    try:
        append(settings.lake, validated_hours(FIRST, 1)[0])
        with open_index(settings) as index:
            assert index.span() is not None
            modes = {file.name: file.stat().st_mode & 0o777 for file in settings.home.glob("quality_index.sqlite*")}
    finally:
        os.umask(before)
    assert len(modes) > 1, "its log lies beside it while it is read"
    assert set(modes.values()) == {0o600}, modes


def test_a_removed_table_leaves_an_empty_index(settings: Settings) -> None:
    append(settings.lake, [Row()])
    catch_up(settings)
    shutil.rmtree(settings.lake)
    with open_index(settings) as index:
        assert index.span() is None


def test_the_newest_event_is_what_became_of_an_hour(settings: Settings) -> None:
    held = event(HOUR, "held", "URLs are not countries")
    append(settings.lake, [event(HOUR, "published_anyway", "known fault", "ada", at=LATER)])
    append(settings.lake, [held, event("2026-03-01T06", "held", "late", at=LATER)])
    with open_index(settings) as index:
        assert [str(event.hour) for event in index.held()] == ["2026-03-01T06"]
        assert [event.outcome for event in index.events(HOUR)] == ["held", "published_anyway"]
        assert index.publications(ALL) == {HOUR: "published_anyway", "2026-03-01T06": "held"}
        (newest,) = index.decided()
        assert (newest.outcome, newest.actor, newest.because) == ("published_anyway", "ada", "known fault")


def test_hours_are_counted_up_to_not_including_the_end(settings: Settings) -> None:
    append(settings.lake, [row for run in validated_hours(FIRST, 3) for row in run])
    with open_index(settings) as index:
        counts = index.counts(HourRange(FIRST.plus(1), FIRST.plus(2)))
        assert {hour for _, hour in counts} == {"2026-03-01T01"}
        assert set(index.publications(HourRange(FIRST.plus(1), FIRST.plus(2)))) == {"2026-03-01T01"}


def test_filters_leave_out_other_sources_and_tables(settings: Settings) -> None:
    append(
        settings.lake,
        [
            Row(outcome="fail"),
            Row(partition="shop 2026-03-01T05", source="shop"),
            Row(check_id="share", checked_table="quarantined_clicks", severity="warning", outcome="fail"),
        ],
    )
    assert counts_of(settings, source="shop") == {("clicks", HOUR): Counts(passed=1)}
    assert counts_of(settings, table="quarantined_clicks") == {("clicks", HOUR): Counts(warnings=1)}
    with open_index(settings) as index:
        assert index.bad_hours() == [(HOUR, Counts(0, 0, 1, 1))]
        assert index.bad_hours(table="quarantined_clicks") == [(HOUR, Counts(0, 0, 1, 0))]
        assert index.bad_hours(source="shop") == []


def test_a_history_has_the_values_and_bounds_of_its_own_series_in_order(settings: Settings) -> None:
    for number in (2, 0, 1):
        hour = str(FIRST.plus(number))
        append(
            settings.lake,
            [
                Row(hour=hour, partition=f"web {hour}", observed_value=number, lowest=-number, highest=10 + number),
                Row(hour=hour, partition=f"shop {hour}", source="shop", observed_value=99),
            ],
        )
    with open_index(settings) as index:
        points = index.history("clicks", "no_event_id_twice", "web", HourRange(FIRST, FIRST.plus(2)))
        assert [(p.hour[-2:], p.value, p.lowest, p.highest) for p in points] == [("00", 0, 0, 10), ("01", 1, -1, 11)]
        newest = index.newest_result("clicks", "no_event_id_twice", "web")
        assert newest is not None
        assert newest.hour == "2026-03-01T02"
        assert index.newest_result("clicks", "no_event_id_twice", "nobody") is None


def test_a_result_is_as_the_table_has_it(settings: Settings) -> None:
    row = Row(outcome="fail", observed="<b>", examples=["a\u202eb", '"'], advice=None, link=None)
    append(settings.lake, [row])
    with open_index(settings) as index:
        (result,) = index.results(HOUR, failing_only=True)
    assert result.examples == ("a\u202eb", '"')
    assert (result.observed, result.advice, result.link, result.series) == ("<b>", None, None, "web")
    assert (result.expectation, result.lowest) == (row.expectation, 0.0)
    assert result.validated_at == "2026-03-01T06:05:00.000000Z"


def _catch_up(settings: Settings) -> None:
    for _ in range(20):
        catch_up(settings)


@pytest.mark.slow
def test_several_processes_bring_it_up_beside_each_other(settings: Settings) -> None:
    runs = validated_hours(FIRST, 30)
    append(settings.lake, runs[0])
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=_catch_up, args=(settings,)) for _ in range(3)]
    for other in others:
        other.start()
    for run in runs[1:]:
        append(settings.lake, run)
    for other in others:
        other.join(120)
    assert [other.exitcode for other in others] == [0, 0, 0]
    beside = content(settings)
    settings.quality_index.unlink()
    assert beside == content(settings)


def test_a_reader_sees_one_state_while_another_process_writes(settings: Settings) -> None:
    append(settings.lake, [Row()])
    with open_index(settings) as index:
        before = index.counts(ALL)
        append(settings.lake, [Row(run_id="run-2", validated_at=LATER, outcome="fail")])
        catch_up(settings)
        assert index.counts(ALL) == before
    assert counts_of(settings) != before


def test_appending_brings_the_index_up(settings: Settings) -> None:
    append(settings.lake, [Row()])
    rows = [vars(Row(run_id="run-2", validated_at=LATER, outcome="fail"))]
    append_results(Lake(cast(SparkSession, None), settings), rows)
    connection = sqlite3.connect(settings.quality_index)
    assert connection.execute("SELECT outcome FROM result").fetchall() == [("fail",)]
    connection.close()


def test_results_are_kept_when_the_index_cannot_be_written(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    append(settings.lake, [Row()])
    settings.quality_index.mkdir(parents=True)
    rows = [vars(Row(run_id="run-2", validated_at=LATER))]
    append_results(Lake(cast(SparkSession, None), settings), rows)
    assert DeltaTable(settings.lake / QUALITY_RESULTS.name).to_pyarrow_dataset().count_rows() == 2
    assert "is behind the lake" in caplog.text


def test_the_series_is_what_stays_when_the_hour_changes() -> None:
    assert quality_index.series_of("web 2026-03-01T05", HOUR) == "web"
    assert quality_index.series_of(HOUR, HOUR) == ""
    assert quality_index.series_of("count_by_url 2026-03-01T05..2026-03-01T07", HOUR) == "count_by_url"


@pytest.mark.parametrize("outcome", ["not_enough_history", "not_final"])
def test_what_was_not_judged_is_neither_good_nor_bad(outcome: str) -> None:
    assert {quality_index.state_of(outcome, severity) for severity in ("warning", "critical")} == {"undecided"}

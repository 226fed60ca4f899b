"""What is kept of results and pages, and for how long; the table stays readable."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from deltalake import DeltaTable

from include.holds import event_row
from include.hours import Hour
from include.journal import Act
from include.tables import GROUPING_METRICS, JOURNAL, QUALITY_RESULTS
from tests.support.temporary_lake import TemporaryLake

pytestmark = pytest.mark.spark

NOW = datetime(2026, 6, 1, tzinfo=UTC)
FIVE = Hour.parse("2026-03-01T05")
ACT = Act("run", "publish_clicks")


def _row(run_id: str, age_days: int, **values: Any) -> dict[str, Any]:
    complete = {
        "run_id": run_id, "validated_at": NOW - timedelta(days=age_days), "suite": "clicks",
        "partition": "web 2026-03-01T05", "source": "web", "hour": "2026-03-01T05", "checked_table": "clicks",
        "check_id": "known_countries", "expectation": "it is", "severity": "critical", "outcome": "pass",
        "observed": "it was", "examples": ["{}"],
    }  # fmt: skip
    return complete | values


def test_old_rows_go_events_stay_and_the_tables_are_few_files(
    lake: TemporaryLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spark_jobs.hours import quality_results as results
    from spark_jobs.hours.quality_results import append_results, remove_old_results
    from spark_jobs.lake.journal import append_events
    from spark_jobs.lake.lake import Lake

    stored = Lake(lake.spark, lake.settings)
    for run_id, age_days in (("old", 401), ("older", 402), ("new", 399)):
        append_results(stored, [_row(run_id, age_days)])
        append_events(stored, [event_row(ACT, NOW - timedelta(days=age_days), FIVE, "published", run_id)])
    seen_by_a_reader = stored.read(QUALITY_RESULTS)
    remove_old_results(stored, lake.settings, NOW)
    assert len(lake.rows(QUALITY_RESULTS)) == 3, "three files are few"

    monkeypatch.setattr(results, "MOST_FILES", 2)
    remove_old_results(stored, lake.settings, NOW)
    assert {row["run_id"] for row in lake.rows(QUALITY_RESULTS)} == {"new"}
    assert [event.because for event in lake.events(FIVE)] == ["older", "old", "new"]
    for table in (QUALITY_RESULTS, JOURNAL):
        assert len(DeltaTable(stored.uri(table)).file_uris()) == 1
    append_results(stored, [_row("newer", 1)])
    assert {row["run_id"] for row in stored.read(QUALITY_RESULTS).collect()} == {"new", "newer"}
    assert {row["examples"][0] for row in stored.read(QUALITY_RESULTS).collect()} == {"{}"}
    assert seen_by_a_reader.count() in (3, 2)


def test_loads_of_instances_are_kept_as_long_and_in_few_files(
    lake: TemporaryLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spark_jobs.hours import quality_results as results
    from spark_jobs.hours.quality_results import remove_old_results
    from spark_jobs.lake.lake import Lake

    def load(run_id: str, age_days: int) -> dict[str, Any]:
        return {
            "run_id": run_id, "measured_at": NOW - timedelta(days=age_days), "job": "aggregate_clicks",
            "operator": "count_by_url", "source": "web", "log_hours": "2026-03-01T05 to 2026-03-01T06",
            "grouping": "fields(url) over 1", "instances": 1, "instance_id": 0, "rows": 3, "keys": 2,
            "busiest_key_share": 0.5,
        }  # fmt: skip

    stored = Lake(lake.spark, lake.settings)
    for run_id, age_days in (("old", 401), ("new", 399), ("newest", 1)):
        stored.append_rows(GROUPING_METRICS, [load(run_id, age_days)])
    monkeypatch.setattr(results, "MOST_FILES", 2)
    remove_old_results(stored, lake.settings, NOW)
    assert {row["run_id"] for row in stored.read(GROUPING_METRICS).collect()} == {"new", "newest"}
    assert len(DeltaTable(str(lake.settings.lake / GROUPING_METRICS.name)).file_uris()) == 1


def test_pages_of_old_runs_go_and_nothing_else(lake: TemporaryLake) -> None:
    from spark_jobs.hours.quality_results import remove_old_results
    from spark_jobs.lake.lake import Lake

    folder = lake.settings.reports / "data_docs"
    names = ["20260302T000000-0123abcd", "20260304T000000-0123abcd", "20250101T000000-my-notes", "index"]
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "page.html").write_text("x")
    remove_old_results(Lake(lake.spark, lake.settings), lake.settings, NOW)
    assert sorted(path.name for path in folder.iterdir()) == sorted(names[1:])


def test_the_newest_publishing_of_an_hour_counts(lake: TemporaryLake) -> None:
    from spark_jobs.hours.held_hours import published_at
    from spark_jobs.lake.journal import append_events
    from spark_jobs.lake.lake import Lake

    stored, six = Lake(lake.spark, lake.settings), FIVE.plus(1)
    assert published_at(stored, [FIVE]) == {}
    told = [(FIVE, "published", 4), (FIVE, "published_anyway", 3), (FIVE, "held", 2), (six, "dropped", 2)]
    rows = [event_row(ACT, NOW - timedelta(days=days), hour, outcome, "so") for hour, outcome, days in told]
    # An answer that nothing has carried out yet.
    rows.append(event_row(ACT, NOW, FIVE, "published_anyway", "so", note="left to another run"))
    append_events(stored, rows)
    at = NOW - timedelta(days=3)
    assert published_at(stored, [FIVE, six]) == {FIVE: int(at.timestamp()) * 1_000_000}
    assert published_at(stored, [six]) == {}

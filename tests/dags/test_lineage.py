"""What OpenLineage is told of a task is what the task does."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from airflow.sdk import DAG

from dags.tasks.lineage import READ_AND_WRITTEN, TaskLineage
from include.settings import REPOSITORY
from include.tables import JOURNAL, TABLES
from tests.dags.test_dags import DAG_FILES, dags_of
from tests.support.temporary_lake import JOBS, TemporaryLake, click

HOUR = "2026-03-01T05"


def test_each_task_of_a_dag_that_works_on_the_lake_says_what_it_writes() -> None:
    dags: list[DAG] = [dag for file in DAG_FILES for dag in dags_of(file)]
    tasks = {
        task.task_id for dag in dags for task in dag.tasks if task.task_type in TaskLineage.get_operator_classnames()
    }
    assert tasks - READ_AND_WRITTEN.keys() == {"plan_backfill", "end_backfill", "find_held", "plan_erasure"}, (
        "they change no counts"
    )
    assert READ_AND_WRITTEN.keys() <= tasks


@pytest.mark.slow
def test_the_tables_that_a_job_says_it_writes_are_those_that_it_commits_to(lake: TemporaryLake) -> None:
    lines = click("e1", f"{HOUR}:10:00Z") + click("e2", f"{HOUR}:11:00Z") + click("e1", f"{HOUR}:12:00Z") + b"broken\n"
    lake.land(HOUR, {"a.json": lines})
    for job in JOBS:
        before = {table.name: lake.commits(table) for table in TABLES.values()}
        lake.run(job, HOUR)
        changed = {table.name for table in TABLES.values() if lake.commits(table) > before[table.name]}
        # A validation says something there only of an hour that it holds.
        changed |= {JOURNAL.name} if job == "validate" else set()
        assert changed == {table.name for table in READ_AND_WRITTEN[f"{job}_clicks"][1]}, job


@pytest.mark.parametrize(
    ("data", "place", "tables"),
    [("/srv/clicks", "file", "/srv/clicks/lake/"), ("s3://bucket/clicks", "s3://bucket", "clicks/lake/")],
)
def test_a_table_is_named_by_where_it_is(data: str, place: str, tables: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLICKMILL_HOME", str(REPOSITORY / "var"))
    monkeypatch.setenv("CLICKMILL_DATA", data)
    told = TaskLineage(SimpleNamespace(task_id="aggregate_clicks")).extract()
    assert told is not None
    assert (told.inputs[0].namespace, told.inputs[0].name) == (place, f"{tables}clicks")
    counts = next(output for output in told.outputs if output.name == f"{tables}clicks_by_url_hourly")
    assert counts.facets is not None
    described = {column.name: column.type for column in counts.facets["schema"].fields}
    assert described == {column.name: column.type for column in TABLES["clicks_by_url_hourly"].columns}

"""Published hours: what is counted of them, whether this process copies it or Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from include.log_hours import Hour
from include.tables import AGGREGATES, PUBLISHED_CLICKS_BY_URL_HOURLY
from spark_jobs.lake.lake import Lake
from spark_jobs.publish import publish_hours
from tests.support.temporary_lake import TemporaryLake, click

pytestmark = pytest.mark.spark

FIRST, END = "2026-03-01T22", "2026-03-02T02"
ALONE = "2026-03-01T23"


def lines_of(hour: str, clicks: int) -> bytes:
    return b"".join(
        click(f"{hour}-{n}", f"{hour}:{n:02d}:00Z", f"http://shop.test/{n % 7}", visitor_id=f"v{n}")
        for n in range(clicks)
    )


@pytest.fixture(scope="module")
def lake(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    """Three hours with clicks across midnight, and one without; counted and validated."""
    lake = make_lake("published-hours")
    for number, clicks in enumerate((20, 11, 0, 5)):
        hour = str(Hour.parse(FIRST).plus(number))
        lake.land(hour, {"a.json": lines_of(hour, clicks)} if clicks else {})
    for job in ("ingest", "aggregate", "validate"):
        lake.run(job, FIRST, END)
    return lake


def published(lake: TemporaryLake) -> dict[str, list[dict[str, Any]]]:
    return {table.name: lake.rows(table) for table in AGGREGATES.values()}


def exports(lake: TemporaryLake) -> dict[Path, str]:
    """The CSV files, without the moment at which a row was written."""
    files = (lake.settings.reports / "exports").rglob("*hourly.csv")
    return {file: file.read_text(encoding="utf-8") for file in files}


def commits_by(lake: TemporaryLake) -> str:
    stored = DeltaTable(lake.settings.lake / PUBLISHED_CLICKS_BY_URL_HOURLY.name)
    return str(stored.history(1)[0]["engineInfo"])


def test_few_rows_and_many_are_published_alike(lake: TemporaryLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.run("publish", FIRST, END)
    assert "delta-rs" in commits_by(lake)
    copied, copied_files = published(lake), exports(lake)
    for computed, table in AGGREGATES.items():
        names = set(table.column_names) - {"counted_at"}
        assert copied[table.name] == sorted(
            ({name: value for name, value in row.items() if name in names} for row in lake.rows(computed)), key=repr
        )
    assert sum(row["click_count"] for row in copied[PUBLISHED_CLICKS_BY_URL_HOURLY.name]) == 20 + 11 + 5

    monkeypatch.setattr(publish_hours, "MOST_BYTES", 0)
    lake.run("publish", FIRST, END)
    assert "Apache-Spark" in commits_by(lake)
    assert published(lake) == copied
    assert exports(lake) == copied_files


def test_an_hour_that_is_copied_is_one_file_and_leaves_the_others_alone(lake: TemporaryLake) -> None:
    lake.run("publish", FIRST, END)
    tables = Lake(lake.spark, lake.settings)
    before = {file.click_hour: file.path for file in tables.data_files(PUBLISHED_CLICKS_BY_URL_HOURLY)}
    lake.run("publish", ALONE)
    after = tables.data_files(PUBLISHED_CLICKS_BY_URL_HOURLY)
    assert len(after) == 3, "an hour without clicks has no file"
    assert {file.click_hour for file in after if before[file.click_hour] != file.path} == {Hour.parse(ALONE)}

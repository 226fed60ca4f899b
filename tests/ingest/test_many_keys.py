"""Clicks that each have a URL of their own: batch, backfill and stream give what plain Python counts.

With every table so large that tasks write it, and as small as it is.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from backports import zstd

from benchmarks.made_clicks import land_hours
from include.hours import Hour, HourRange
from include.tables import (
    AGGREGATES,
    CLICKS,
    PUBLISHED_CLICKS_BY_COUNTRY_HOURLY,
    PUBLISHED_CLICKS_BY_URL_HOURLY,
    Table,
    daily_table,
)
from spark_jobs.backfill.plan import Request
from tests.stream.files_lake import FilesLake, in_order_of_names
from tests.support.temporary_lake import TemporaryLake, assert_same_tables

pytestmark = pytest.mark.spark

HOURS = HourRange(Hour.parse("2026-03-01T22"), Hour.parse("2026-03-02T01"))
WHOLE = str(HOURS.start), str(HOURS.end)
#: Whatever has more bytes than this is work for tasks, not for the job's process.
LARGE_FROM = {
    "spark_jobs.aggregate.days.FEW_BYTES": -1,
    "spark_jobs.aggregate.days.MOST_BYTES": 1,
    "spark_jobs.ids.repeated_ids._TASK_BYTES": 1,
    "spark_jobs.ingest.spark_arrivals._TASK_BYTES": 1,
    "spark_jobs.lake.copied_files.TASK_BYTES": 1,
    "spark_jobs.lake.lake.TASK_BYTES": 1,
    "spark_jobs.publish.exports.TASK_BYTES": 1,
}
Counts = Counter[tuple[str, str]]


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    landing = tmp_path_factory.mktemp("many") / "landing"
    land_hours(landing, HOURS.start, [2000, 3000, 2000], "distinct")
    in_order_of_names(landing)
    return landing


@pytest.fixture(scope="module")
def counted(landing: Path) -> dict[str, Counts]:
    """The clicks of the lines, the first of each id, by click hour and by key."""
    seen, by_url, by_country = set(), Counts(), Counts()
    for file in sorted(landing.rglob("*.zst")):
        for line in zstd.decompress(file.read_bytes()).splitlines():
            try:
                click = json.loads(line)
            except ValueError:
                continue
            if click["event_id"] not in seen:
                seen.add(click["event_id"])
                by_url[click["ts"][:13], click["url"].partition("?")[0]] += 1
                by_country[click["ts"][:13], click["geo"]["country"]] += 1
    assert len(by_url) == by_url.total() > 6000
    return {"url": by_url, "country_code": by_country}


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in LARGE_FROM.items():
        monkeypatch.setattr(name, size)


@pytest.fixture(scope="module")
def at_once(make_lake: Callable[[str], TemporaryLake], landing: Path) -> TemporaryLake:
    """All hours in one range, each step in as few pieces as so few rows are."""
    lake = with_landed(make_lake("at_once"), landing)
    lake.run_all(*WHOLE)
    return lake


def with_landed(lake: TemporaryLake, landing: Path) -> TemporaryLake:
    shutil.copytree(landing, lake.settings.landing)
    return lake


def by_hour(lake: TemporaryLake, table: Table) -> Counts:
    counts = Counts()
    for row in lake.rows(table):
        counts[str(Hour.of(row["click_date"], row["click_hour"])), row[table.key[-1]]] += row["click_count"]
    return counts


def counts_of(lake: TemporaryLake) -> dict[str, list[dict[str, Any]]]:
    """The tables of counts, computed and published; a stream has no visitors' sketches of a batch's bytes."""
    tables = [table for pair in AGGREGATES.items() for table in pair]
    return {
        table.name: [
            {name: value for name, value in row.items() if name != "visitor_sketch"} for row in lake.rows(table)
        ]
        for table in tables
    }


def test_every_url_is_counted_once(at_once: TemporaryLake, counted: dict[str, Counts]) -> None:
    for table in (PUBLISHED_CLICKS_BY_URL_HOURLY, PUBLISHED_CLICKS_BY_COUNTRY_HOURLY):
        assert by_hour(at_once, table) == counted[table.key[-1]], table.name
    days = Counts()
    for row in at_once.rows(daily_table(PUBLISHED_CLICKS_BY_URL_HOURLY)):
        if row["time_zone"] == "UTC":
            days[str(row["click_date"]), row["url"]] += row["click_count"]
    assert days == Counts({(hour[:10], url): count for (hour, url), count in counted["url"].items()})


@pytest.mark.usefixtures("large")
def test_tables_of_any_size_are_written_alike(
    make_lake: Callable[[str], TemporaryLake], landing: Path, at_once: TemporaryLake
) -> None:
    lake = with_landed(make_lake("large"), landing)
    for again in (False, True):
        lake.run_all(*WHOLE)
        assert_same_tables(lake.tables(), at_once.tables())
        assert lake.exports() == at_once.exports(), again


@pytest.mark.usefixtures("large")
def test_a_backfill_in_chunks_gives_the_same(
    make_lake: Callable[[str], TemporaryLake], landing: Path, at_once: TemporaryLake
) -> None:
    lake = with_landed(make_lake("backfill"), landing)
    lake.backfill(Request("web", HOURS, chunk_hours=1))
    assert lake.rows(CLICKS) == at_once.rows(CLICKS)
    assert_same_tables(counts_of(lake), counts_of(at_once))


@pytest.mark.usefixtures("large")
def test_a_stream_gives_the_same(
    make_lake: Callable[[str], TemporaryLake], landing: Path, at_once: TemporaryLake
) -> None:
    made = make_lake("stream")
    streamed = FilesLake(made.spark, made.settings)
    with_landed(streamed, landing)
    streamed.configure(max_files_per_batch=1)
    streamed.read_all()
    streamed.run_all(*WHOLE)
    assert streamed.rows(CLICKS) == at_once.rows(CLICKS)
    assert_same_tables(counts_of(streamed), counts_of(at_once))

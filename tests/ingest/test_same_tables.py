"""The same clicks give the same tables: in one run, hour by hour, backwards, twice; and they are the sample's truth."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from include.hours import Hour
from include.tables import (
    CLICKS,
    CLICKS_BY_COUNTRY_HOURLY,
    CLICKS_BY_URL_HOURLY,
    PUBLISHED_CLICKS_BY_COUNTRY_HOURLY,
    PUBLISHED_CLICKS_BY_URL_HOURLY,
    QUARANTINED_CLICKS,
    Table,
)
from samples.sample_logs import make_sample
from samples.sample_spec import SampleSpec
from samples.truth import HourlyCounts, Truth
from tests.support.temporary_lake import TemporaryLake, assert_same_tables

# Lateness and copies over the hours, every kind of damage, and in one hour plain, gzip and zstd files.
SPEC = SampleSpec(start=Hour.parse("2026-03-01T21"), hours=3, clicks_per_hour=3000, seed=11)
START, END = str(SPEC.log_hours.start), str(SPEC.log_hours.end)
HOURS = [str(hour) for hour in SPEC.log_hours]

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    landing = tmp_path_factory.mktemp("sample") / "landing"
    return landing, make_sample(SPEC, landing)


@pytest.fixture(scope="module")
def at_once(make_lake: Callable[[str], TemporaryLake], sample: tuple[Path, Truth]) -> TemporaryLake:
    lake = _with_sample(make_lake("at_once"), sample[0])
    lake.run_all(START, END)
    return lake


def _with_sample(lake: TemporaryLake, landing: Path) -> TemporaryLake:
    shutil.copytree(landing, lake.settings.landing)
    return lake


def test_sample_has_what_this_module_is_about(sample: tuple[Path, Truth]) -> None:
    landing, truth = sample
    suffixes = {file.suffix for file in (landing / "web/log_date=2026-03-01/log_hour=21").glob("part-*")}
    assert suffixes == {".json", ".gz", ".zst"}
    assert all(hour.duplicates and hour.accepted for hour in truth.log_hours.values())
    assert sum(hour.late for hour in truth.log_hours.values()) > 100


def test_accounting_is_the_truth(at_once: TemporaryLake, sample: tuple[Path, Truth]) -> None:
    accounting = at_once.accounting()
    assert list(accounting) == HOURS
    for hour, truth in sample[1].log_hours.items():
        account = accounting[hour]
        assert account["quarantined_by_reason"] == truth.quarantined
        assert account["quarantined"] == sum(truth.quarantined.values())
        for name in ("lines", "accepted", "duplicates", "late", "files"):
            assert account[name] == getattr(truth, name), (hour, name)
        assert account["lines"] == account["accepted"] + account["duplicates"] + account["quarantined"]
        assert sum(account["duplicates_of"].values()) == account["duplicates"]
        assert account["damaged_files"] == []
        assert account["is_closed"]
        folder = at_once.settings.landing / "web" / f"log_date={hour[:10]}" / f"log_hour={hour[11:]}"
        assert account["bytes"] == sum(file.stat().st_size for file in folder.glob("part-*"))


def test_rows_are_as_many_as_the_accounting_says(at_once: TemporaryLake) -> None:
    accounting = at_once.accounting().values()
    clicks = at_once.rows(CLICKS)
    assert len(clicks) == sum(account["accepted"] for account in accounting)
    assert len({click["event_id"] for click in clicks}) == len(clicks)
    assert len(at_once.rows(QUARANTINED_CLICKS)) == sum(account["quarantined"] for account in accounting)
    times = [click["clicked_at"] for click in clicks]
    assert min(account["first_clicked_at"] for account in accounting) == min(times)
    assert max(account["last_clicked_at"] for account in accounting) == max(times)


@pytest.mark.parametrize(
    ("table", "key", "truth_of"),
    [
        (CLICKS_BY_URL_HOURLY, "url", "clicks_by_url"),
        (CLICKS_BY_COUNTRY_HOURLY, "country_code", "clicks_by_country"),
        (PUBLISHED_CLICKS_BY_URL_HOURLY, "url", "clicks_by_url"),
        (PUBLISHED_CLICKS_BY_COUNTRY_HOURLY, "country_code", "clicks_by_country"),
    ],
    ids=lambda value: value.name if isinstance(value, Table) else None,
)
def test_counts_are_the_truth(
    at_once: TemporaryLake, sample: tuple[Path, Truth], table: Table, key: str, truth_of: str
) -> None:
    truth: HourlyCounts = getattr(sample[1], truth_of)
    expected = {
        (hour, name): (counts.clicks, counts.bots, counts.visitors)
        for hour, by_key in truth.items()
        for name, counts in by_key.items()
    }
    by_place = {(f"{row['click_date']}T{row['click_hour']:02d}", row[key]): row for row in at_once.rows(table)}
    assert by_place.keys() == expected.keys()
    for place, (clicks, bots, visitors) in expected.items():
        row = by_place[place]
        assert (row["click_count"], row["bot_click_count"]) == (clicks, bots), place
        assert row["visitor_count"] == pytest.approx(visitors, rel=0.05, abs=1), place
    assert max(visitors for _, _, visitors in expected.values()) > 200


def test_every_job_run_again_gives_the_same_tables(at_once: TemporaryLake) -> None:
    before = at_once.tables()
    commits = at_once.commits(CLICKS)
    at_once.run_all(START, END)
    assert at_once.commits(CLICKS) > commits
    assert_same_tables(at_once.tables(), before)


def test_hour_by_hour_gives_the_same_tables(
    make_lake: Callable[[str], TemporaryLake], sample: tuple[Path, Truth], at_once: TemporaryLake
) -> None:
    lake = _with_sample(make_lake("hour_by_hour"), sample[0])
    for hour in HOURS:
        lake.run("ingest", hour)
        lake.run("aggregate", hour)
    assert_same_tables(_computed(lake), _computed(at_once))


def test_backwards_gives_the_same_tables(
    make_lake: Callable[[str], TemporaryLake], sample: tuple[Path, Truth], at_once: TemporaryLake
) -> None:
    lake = _with_sample(make_lake("backwards"), sample[0])
    for hour in reversed(HOURS):
        lake.run("ingest", hour)
    lake.run("aggregate", START, END)
    assert_same_tables(_computed(lake), _computed(at_once))


def _computed(lake: TemporaryLake) -> dict[str, list[dict[str, Any]]]:
    """Without what only publishing writes. An account remembers click hours of runs before, so it may name more."""
    tables = {name: rows for name, rows in lake.tables().items() if not name.startswith("published_")}
    for account in tables["ingest_accounting"]:
        del account["click_hours"]
    return tables

"""A lake that is maintained: the same rows, without files that nobody needs, and without any other removed."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from include.locks import locks_of
from include.tables import CLICKS_BY_URL_LIVE, PUBLISHED_CLICKS_BY_URL_HOURLY, QUARANTINED_CLICKS
from include.visitor_keys import VisitorKeys
from spark_jobs.lake.lake import Lake
from spark_jobs.retention.job import maintain as run

if TYPE_CHECKING:
    from include.settings import Settings

LONG_AGO = timedelta(days=8).total_seconds()
TABLE = QUARANTINED_CLICKS


def rows(*lines: int) -> list[dict[str, object]]:
    common = {"source": "web", "log_date": date(2026, 3, 1), "log_hour": 5, "file": "ä b.json", "reason": "not_json"}
    return [{**common, "line": line, "raw": "x" * 1000, "bytes": 1000} for line in lines]


@pytest.fixture
def lake(settings: Settings) -> Lake:
    """A table of three files, which another has replaced; and an empty one."""
    lake = Lake(None, settings)
    for line in range(3):
        lake.append_rows(TABLE, rows(line))
    lake.replace_rows(TABLE, rows(7, 8), "log_hour = 5")
    lake.append_rows(CLICKS_BY_URL_LIVE, [])
    return lake


def stored(lake: Lake, version: int | None = None) -> list[int]:
    return sorted(DeltaTable(lake.uri(TABLE), version=version).to_pyarrow_table()["line"].to_pylist())


def left_by_killed(lake: Lake, name: str, age_seconds: float) -> Path:
    """A file that a task has written and no job has committed."""
    file = lake.path(TABLE) / "source=web" / "log_date=2026-03-01" / "log_hour=5" / name
    file.write_bytes(b"PAR1 and no more")
    os.utime(file, (time.time() - age_seconds,) * 2)
    return file


def test_what_a_version_of_the_last_week_has_stays(lake: Lake) -> None:
    fresh, old = left_by_killed(lake, "fresh.parquet", 3_600), left_by_killed(lake, "old.parquet", LONG_AGO)
    version = DeltaTable(lake.uri(TABLE)).version()
    assert run(lake.settings, dry_run=True) == [
        "quarantined_clicks: 1 files, 0.0 MB",
        "replaced or left behind earlier, would be removed: 1 files, 0.0 MB",
    ]
    assert old.exists()
    assert DeltaTable(lake.uri(TABLE)).version() == version, "nothing is said in Delta's log either"
    assert run(lake.settings, dry_run=False)[-1] == "replaced or left behind earlier, removed: 1 files, 0.0 MB"
    assert not old.exists()
    assert fresh.exists(), "its job may be about to commit it"
    assert stored(lake) == [7, 8]
    assert stored(lake, version - 1) == [0, 1, 2], "who has begun to read goes on"
    version = DeltaTable(lake.uri(TABLE)).version()
    assert run(lake.settings, dry_run=False) == ["replaced or left behind earlier, removed: 0 files, 0.0 MB"]
    assert DeltaTable(lake.uri(TABLE)).version() == version


def test_what_was_replaced_before_that_goes(lake: Lake) -> None:
    report = run(lake.settings, dry_run=False, kept=timedelta(0))
    assert report[-1].startswith("replaced or left behind earlier, removed: 3 files, ")
    assert stored(lake) == [7, 8]
    folder = lake.path(TABLE)
    (left,) = (file for file in folder.rglob("*.parquet") if "_delta_log" not in file.parts)
    assert Path(left).relative_to(folder).parts[0] == "source=web"


def test_what_an_undone_backfill_needs_stays(lake: Lake) -> None:
    """Delta's log forgets after a week which files were replaced, and when."""
    for count in range(2):
        lake.replace_rows(PUBLISHED_CLICKS_BY_URL_HOURLY, [published(count)], "true")
    files = set(lake.path(PUBLISHED_CLICKS_BY_URL_HOURLY).rglob("*.parquet"))
    assert len(files) == 2
    run(lake.settings, dry_run=False, kept=timedelta(0))
    assert set(lake.path(PUBLISHED_CLICKS_BY_URL_HOURLY).rglob("*.parquet")) == files


def test_old_keys_for_visitors_are_destroyed_and_said(lake: Lake) -> None:
    keys, day = VisitorKeys.of(lake.settings), date(2026, 3, 1)
    key, later = keys.of_day(day), datetime.now(UTC) + timedelta(days=32)
    assert "keys for visitors of 2026-03-01" in run(lake.settings, dry_run=True, now=later)
    assert keys.known([day]) == {day: key}
    assert "keys for visitors of 2026-03-01" not in run(lake.settings, dry_run=False)
    assert "keys for visitors of 2026-03-01" in run(lake.settings, dry_run=False, now=later)
    assert keys.known([day]) == {}


def published(count: int) -> dict[str, object]:
    hour = {"click_date": date(2026, 3, 1), "click_hour": 5, "url": "http://a.test/"}
    return hour | {"click_count": count, "bot_click_count": 0, "visitor_count": 1, "visitor_sketch": b""}


@pytest.mark.parametrize("lock", ["lake", f"write-{TABLE.name}"])
def test_it_waits_for_a_job_that_is_running(lake: Lake, lock: str) -> None:
    left_by_killed(lake, "old.parquet", LONG_AGO)
    report: list[str] = []
    maintaining = threading.Thread(target=lambda: report.extend(run(lake.settings, dry_run=False)))
    with locks_of(lake.settings).held(lock):
        maintaining.start()
        maintaining.join(1)
        assert maintaining.is_alive()
        assert not report
    maintaining.join(60)
    assert report[-1] == "replaced or left behind earlier, removed: 1 files, 0.0 MB"

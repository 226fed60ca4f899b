"""Landing partitions that go: only what the account lists, whatever happens meanwhile. Without Spark."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from include.hours import Hour, log_hours_predicate
from include.landing import SUCCESS, as_landed_files, hour_folder, look_at
from include.settings import Settings
from include.tables import INGEST_ACCOUNTING
from spark_jobs.lake.lake import Lake
from spark_jobs.retention import old_landing
from spark_jobs.retention.old_landing import _going

HOUR, NEXT = Hour.parse("2026-03-01T05"), Hour.parse("2026-03-01T06")
BEFORE = Hour.parse("2026-03-09T00")


@pytest.fixture
def lake(settings: Settings) -> Lake:
    return Lake(None, settings)


def folder_of(lake: Lake, hour: Hour = HOUR) -> Path:
    return hour_folder(lake.settings.landing, "web", hour)


def land(lake: Lake, hour: Hour, *names: str) -> None:
    folder = folder_of(lake, hour)
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*names, SUCCESS):
        (folder / name).write_text(f"{name}\n")


def ingest(lake: Lake, *hours: Hour) -> None:
    """As read and published, as far as it matters here: without clicks there is nothing to publish."""
    rows = []
    for hour in hours:
        landed = look_at(lake.settings.landing, "web", hour)
        row: dict[str, Any] = dict.fromkeys(INGEST_ACCOUNTING.column_names)
        row |= {column.name: 0 for column in INGEST_ACCOUNTING.columns if column.type in ("INT", "BIGINT")}
        row |= {column.name: [] for column in INGEST_ACCOUNTING.columns if column.type == "ARRAY<STRING>"}
        row |= {"duplicates_of": {}, "quarantined_by_reason": {}, "is_closed": True, "ingested_at": datetime.now(UTC)}
        row |= {"source": "web", "log_date": hour.day, "log_hour": hour.hour, "looked_at": landed.looked_at}
        rows.append(row | {"landed_files": as_landed_files(landed.listed)})
    lake.replace_rows(INGEST_ACCOUNTING, rows, log_hours_predicate("web", hours))


def removed(lake: Lake, archive: Path | None = None, then: Callable[[], None] = lambda: None) -> tuple[str, ...]:
    """What stays and why; ``then`` happens between the look and the removal."""
    (stage,) = old_landing.old_landing(lake, "web", BEFORE, archive)
    then()
    stage.run()
    return tuple(line.removeprefix("  stays: ") for line in stage.lines if line.startswith("  stays: "))


def there(lake: Lake) -> dict[str, list[str]]:
    folders = sorted((lake.settings.landing / "web").glob("log_date=*/*"))
    return {folder.name: sorted(file.name for file in folder.iterdir()) for folder in folders}


def removed_at(lake: Lake) -> dict[int, bool]:
    rows = lake.read_rows(INGEST_ACCOUNTING, ["log_hour", "landing_removed_at"], [])
    return {row["log_hour"]: row["landing_removed_at"] is not None for row in rows}


def test_what_was_read_goes_and_is_archived_and_the_account_says_so(lake: Lake, tmp_path: Path) -> None:
    land(lake, HOUR, "a", ".hidden")
    land(lake, NEXT, "b")
    ingest(lake, HOUR)
    kept = removed(lake, tmp_path / "archive")
    assert kept == (f"{NEXT}, as it has not been ingested since it landed",)
    assert there(lake) == {"log_hour=06": [SUCCESS, "b"]}
    archived = tmp_path / "archive" / "web" / "log_date=2026-03-01" / "log_hour=05"
    assert sorted(file.name for file in archived.iterdir()) == [".hidden", SUCCESS, "a"]
    assert removed_at(lake) == {5: True}


@pytest.mark.parametrize("change", ["other date", "other size", "renamed", "added", "a folder", "closed again"])
def test_whatever_changes_between_the_look_and_the_removal_keeps_the_partition(lake: Lake, change: str) -> None:
    land(lake, HOUR, "a")
    land(lake, NEXT, "b")
    ingest(lake, HOUR, NEXT)
    folder = folder_of(lake)

    def changed() -> None:
        match change:
            case "other date":
                os.utime(folder / "a", (0, 0))
            case "other size":
                state = (folder / "a").stat()
                (folder / "a").write_text("more than that\n")
                os.utime(folder / "a", ns=(state.st_atime_ns, state.st_mtime_ns))
            case "renamed":
                (folder / "a").rename(folder / "c")
            case "added":
                (folder / "c").touch()
                os.utime(folder / "c", (0, 0))
            case "a folder":
                (folder / "c").mkdir()
            case "closed again":
                os.utime(folder / SUCCESS, (0, 0))

    removed(lake, then=changed)
    assert there(lake).keys() == {"log_hour=05"}
    assert removed_at(lake) == {5: False, 6: True}
    # And as it is now, it is not even tried.
    assert removed(lake) == (f"{HOUR}, as it has not been ingested since it landed",)
    ingest(lake, HOUR)
    removed(lake)
    assert there(lake) == {}


def test_what_a_killed_removal_has_left_goes_and_what_came_into_it_is_put_back(lake: Lake) -> None:
    land(lake, HOUR, "a", "b")
    land(lake, NEXT, "c")
    ingest(lake, HOUR, NEXT)
    for hour in (HOUR, NEXT):
        folder_of(lake, hour).rename(_going(folder_of(lake, hour)))
    (_going(folder_of(lake)) / "a").unlink()
    (_going(folder_of(lake, NEXT)) / "late").touch()
    removed(lake)
    assert there(lake) == {"log_hour=06": [SUCCESS, "c", "late"]}


def test_a_partition_that_is_made_anew_while_the_former_one_goes_stays(lake: Lake) -> None:
    land(lake, HOUR, "a", "b")
    ingest(lake, HOUR)
    folder_of(lake).rename(_going(folder_of(lake)))
    land(lake, HOUR, "late")
    removed(lake)
    assert there(lake) == {"log_hour=05": [SUCCESS, "late"]}
    # Of the one that is unknown, what has come to both is kept.
    lake.replace_rows(INGEST_ACCOUNTING, [], log_hours_predicate("web", [HOUR]))
    folder_of(lake).rename(_going(folder_of(lake)))
    land(lake, HOUR, "later")
    removed(lake)
    assert there(lake) == {"log_hour=05": [SUCCESS, "late", "later"]}

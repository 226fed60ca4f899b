"""Published hours: copies of the counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from include.errors import ClickmillError
from include.hours import Hour, HourRange
from include.tables import AGGREGATES, CLICKS_BY_URL_HOURLY, PUBLISHED, PUBLISHED_CLICKS_BY_URL_HOURLY
from spark_jobs.lake import copied_files
from spark_jobs.lake.lake import Lake
from spark_jobs.publish import exports, publish_hours
from tests.support.killed_runs import Killed
from tests.support.temporary_lake import TemporaryLake, click

pytestmark = pytest.mark.spark

HOURS = HourRange(Hour.parse("2026-03-01T22"), Hour.parse("2026-03-02T02"))
#: Of the hours, one has no clicks.
CLICKS = dict(zip(HOURS, (3, 0, 2, 4), strict=True))


def land(lake: TemporaryLake, more: int = 0) -> None:
    for hour, clicks in CLICKS.items():
        lines = [click(f"{hour}-{n}", f"{hour}:{n:02d}:00Z", f"http://shop.test/{n}") for n in range(clicks)]
        lines += [click(f"{hour}-more-{n}", f"{hour}:30:{n:02d}Z") for n in range(more if clicks else 0)]
        lake.land(str(hour), {"a.json": b"".join(lines)})


def clicks_by_hour(lake: TemporaryLake) -> dict[str, int]:
    clicks: dict[str, int] = {}
    for row in lake.rows(PUBLISHED_CLICKS_BY_URL_HOURLY):
        hour = f"{row['click_date']}T{row['click_hour']:02d}"
        clicks[hour] = clicks.get(hour, 0) + row["click_count"]
    return clicks


def expected(more: int = 0) -> dict[str, int]:
    return {str(hour): clicks + more for hour, clicks in CLICKS.items() if clicks}


def copied(lake: TemporaryLake) -> list[list[dict[str, Any]]]:
    return [
        sorted(({name: row[name] for name in published.column_names} for row in lake.rows(computed)), key=repr)
        for computed, published in AGGREGATES.items()
    ]


def test_published_hours_are_copies_of_the_counts_in_one_commit(
    lake: TemporaryLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = (str(HOURS.start), str(HOURS.end))
    land(lake)
    lake.run_all(*whole)
    assert clicks_by_hour(lake) == expected()
    assert [lake.rows(table) for table in AGGREGATES.values()] == copied(lake)

    land(lake, more=2)
    for job in ("ingest", "aggregate", "validate"):
        lake.run(job, *whole)
    for module in (copied_files, exports):
        monkeypatch.setattr(module, "TASK_BYTES", 1)
    before = lake.commits(PUBLISHED_CLICKS_BY_URL_HOURLY)
    lake.run("publish", *whole)
    assert lake.commits(PUBLISHED_CLICKS_BY_URL_HOURLY) - before == 1
    assert clicks_by_hour(lake) == expected(2)
    assert len(lake.exports()) == 2 * 2 * (len(expected()) + 2), "of both tables, as Parquet and CSV, hours and days"

    # A file of counts is lost after it was judged.
    published = [lake.rows(table) for table in AGGREGATES.values()]
    lost, *_ = Lake(lake.spark, lake.settings).data_files(CLICKS_BY_URL_HOURLY)
    lost.path.unlink()
    reason = f"(?s)nothing of {PUBLISHED_CLICKS_BY_URL_HOURLY.name} .* from {CLICKS_BY_URL_HOURLY.name}: [^;]*"
    with pytest.raises(ClickmillError, match=f"{reason}{lost.path.name}[^;]*; if .* --from"):
        publish_hours.publish_hours(Lake(lake.spark, lake.settings), list(HOURS))
    assert lake.rows(PUBLISHED_CLICKS_BY_URL_HOURLY) == published[0]


def contents(lake: TemporaryLake) -> dict[str, bytes]:
    """Of each table's exports what they have, and the names of what else is there."""
    folder = lake.settings.reports / "exports"
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def uncommitted(lake: TemporaryLake) -> set[str]:
    """Files of published tables that belong to no version that is there now."""
    opened = Lake(lake.spark, lake.settings)
    known = {str(file.path) for table in AGGREGATES.values() for file in opened.data_files(table)}
    folders = (lake.settings.lake / table.name for table in AGGREGATES.values())
    return {str(file) for folder in folders for file in folder.rglob("*.parquet")} - known


@contextmanager
def killed_before(module: Any, name: str, number: int) -> Iterator[None]:
    """Kill the job before the call of this number of that function; a killed job tidies nothing up."""
    numbers = count(1)
    called: Callable[..., Any] = getattr(module, name)
    with pytest.MonkeyPatch.context() as patch:

        def call(*arguments: Any, **options: Any) -> Any:
            if next(numbers) >= number:
                patch.setattr(exports, "remove_folder", lambda folder: None)
                raise Killed
            return called(*arguments, **options)

        patch.setattr(module, name, call)
        yield


@pytest.fixture(scope="module")
def judged(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    """Published once, and counted and validated again, with more clicks."""
    lake, whole = make_lake("judged"), (str(HOURS.start), str(HOURS.end))
    land(lake)
    lake.run_all(*whole)
    land(lake, more=2)
    for job in ("ingest", "aggregate", "validate"):
        lake.run(job, *whole)
    return lake


@pytest.fixture(scope="module")
def never_killed(judged: TemporaryLake, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The exports that the publish makes."""
    lake = judged.copy(tmp_path_factory.mktemp("never-killed") / "home")
    lake.run("publish", str(HOURS.start), str(HOURS.end))
    return contents(lake)


def publish(lake: TemporaryLake) -> None:
    opened = Lake(lake.spark, lake.settings)
    versions = {opened.version(CLICKS_BY_URL_HOURLY): list(HOURS)}
    publish_hours.replace_published(opened, PUBLISHED_CLICKS_BY_URL_HOURLY, CLICKS_BY_URL_HOURLY, versions)


def assert_published_again(lake: TemporaryLake, never_killed: dict[str, bytes]) -> None:
    """The same job again puts everything right, whatever a task of the killed one still writes meanwhile."""
    for table in (*PUBLISHED, *PUBLISHED.values()):
        late = lake.settings.reports / "exports" / table.name / ".written-late"
        late.mkdir(parents=True)
        (late / "half").write_bytes(b"half")
    lake.run("publish", str(HOURS.start), str(HOURS.end))
    assert clicks_by_hour(lake) == expected(2)
    assert [lake.rows(table) for table in AGGREGATES.values()] == copied(lake)
    assert contents(lake) == never_killed


@pytest.mark.parametrize("moved", [0, 1, 3])
def test_an_export_killed_before_its_files_are_in_their_places_is_put_right(
    judged: TemporaryLake,
    never_killed: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    moved: int,
) -> None:
    lake = judged.copy(tmp_path / "killed")
    before = contents(lake)
    # By tasks: what they have written is there, and they have said so.
    monkeypatch.setattr(exports, "TASK_BYTES", 1)
    with killed_before(exports, "move", moved + 1), pytest.raises(Killed):
        publish(lake)
    monkeypatch.undo()
    assert clicks_by_hour(lake) == expected(2)
    now = contents(lake)
    assert sum("/.written-" in name for name in now) == 2 * len(expected()) - moved
    assert sum(now[name] != content for name, content in before.items()) == moved
    assert_published_again(lake, never_killed)


@pytest.mark.parametrize(("module", "name", "number"), [(copied_files, "rows_of", 2), (Lake, "replace_files", 1)])
def test_a_publish_killed_while_it_copies_has_changed_nothing_and_is_put_right(
    judged: TemporaryLake, never_killed: dict[str, bytes], tmp_path: Path, module: Any, name: str, number: int
) -> None:
    """In the midst of the copies, and when all are written."""
    lake = judged.copy(tmp_path / "killed")
    before, files, rows = contents(lake), uncommitted(lake), lake.rows(PUBLISHED_CLICKS_BY_URL_HOURLY)
    with killed_before(module, name, number), pytest.raises(Killed):
        publish(lake)
    assert uncommitted(lake) - files != set()
    assert lake.rows(PUBLISHED_CLICKS_BY_URL_HOURLY) == rows
    assert contents(lake) == before
    assert_published_again(lake, never_killed)

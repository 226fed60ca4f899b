"""Published hours: copies of the counts."""

from __future__ import annotations

from typing import Any

import pytest

from include.errors import ClickmillError
from include.hours import Hour, HourRange
from include.tables import AGGREGATES, CLICKS_BY_URL_HOURLY, PUBLISHED_CLICKS_BY_URL_HOURLY
from spark_jobs.lake import copied_files
from spark_jobs.lake.lake import Lake
from spark_jobs.publish import exports, publish_hours
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
    found: dict[str, int] = {}
    for row in lake.rows(PUBLISHED_CLICKS_BY_URL_HOURLY):
        hour = f"{row['click_date']}T{row['click_hour']:02d}"
        found[hour] = found.get(hour, 0) + row["click_count"]
    return found


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

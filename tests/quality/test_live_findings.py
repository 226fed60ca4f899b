"""What is said of an hour's live counts: from facts, and how far the live counts have got, from the stream's tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from expectations.facts import as_facts
from expectations.judge import Finding, Partition
from expectations.suites.live import live_findings
from include.hours import Hour
from spark_jobs.lake.lake import Lake
from spark_jobs.quality.facts import live_progress
from tests.support.temporary_lake import make_settings

HOUR = Hour.parse("2026-03-01T08")
BY_URL = Partition(HOUR), "live_by_url_equals_clicks"


def clicks(number: int, source: str = "web") -> dict[str, Any]:
    return {"source": source, "click_date": HOUR.day, "click_hour": HOUR.hour, "clicks": number}


def of_log_hour(hour: int, number: int, source: str = "web") -> dict[str, Any]:
    return {**clicks(number, source), "log_date": HOUR.day, "log_hour": hour}


def progress(
    batch_id: int, began: float, watermark: float | None, too_late: int = 0, *, source: str = "web", **more: Any
) -> dict[str, Any]:
    """A micro-batch that began so many minutes after the hour's end, its watermark as many."""
    return {
        "source": source,
        "query": "url",
        "batch_id": batch_id,
        "began_at": HOUR.end + timedelta(minutes=began),
        "watermark": None if watermark is None else HOUR.end + timedelta(minutes=watermark),
        "too_late": too_late,
        **more,
    }


BEGUN = progress(0, 0, None)


def finding(
    finalised: int, still_open: int, live: int, *batches: dict[str, Any], more: tuple[dict[str, Any], ...] = ()
) -> Finding | None:
    facts = {
        "clicks": [of_log_hour(8, finalised), of_log_hour(9, still_open), *more],
        "open_log_hours": [{"source": "web", "log_date": HOUR.day, "log_hour": 9}],
        "live_counts": [{"key": "url", **clicks(live)}],
        "live_progress": batches,
    }
    return live_findings([HOUR], as_facts(facts), ["url"]).get(BY_URL)


@pytest.mark.parametrize(
    ("finalised", "still_open", "live", "too_late", "unexplained"),
    [
        (10, 0, 10, 0, 0),
        (10, 2, 12, 0, 0),
        (10, 2, 9, 3, 0),
        (10, 0, 9, 3, 0),
        (10, 0, 9, 0, 1),
        (10, 2, 8, 1, 3),
        (10, 0, 12, 5, 2),
    ],
)
def test_live_has_no_click_too_many_and_lacks_those_too_late(
    finalised: int, still_open: int, live: int, too_late: int, unexplained: int
) -> None:
    result = finding(finalised, still_open, live, BEGUN, progress(7, 10, 0, too_late))
    assert result is not None
    assert (result.judged, result.value) == (unexplained, unexplained)
    assert result.observed == f"web: {finalised + still_open} clicks, {live} live, {too_late} too late for live"


def test_what_is_not_final_is_not_judged_but_said() -> None:
    result = finding(10, 0, 3, BEGUN, progress(6, 9, -1))
    assert result is not None
    assert result.judged is None
    assert result.observed == "web: 10 clicks, 3 live; not final: the watermark has not passed the hour"
    # Of two sources the one that is final is judged.
    both = finding(
        10,
        0,
        9,
        BEGUN,
        progress(7, 10, 0),
        progress(0, 0, None, source="shop"),
        more=(of_log_hour(8, 5, "shop"), of_log_hour(8, 1, "landed")),
    )
    assert both is not None
    assert both.judged == 1
    assert both.observed == (
        "shop: 5 clicks, 0 live; not final: the watermark has not passed the hour; "
        "web: 10 clicks, 9 live, 0 too late for live"
    )


def test_nothing_is_said_where_nothing_is_counted_live() -> None:
    assert finding(10, 0, 0) is None
    assert finding(0, 0, 0, BEGUN, progress(7, 10, 0)) is None


# --- how far the live counts have got ---------------------------------------------------------------------------------


def observed(home: Path, *rows: dict[str, Any], arrived: datetime | None = None) -> str | None:
    """What is said of ten clicks, by the tables of the stream."""
    settings = make_settings(home)
    moment = pa.timestamp("us", tz="UTC")
    schema = {
        "source": pa.string(), "query": pa.string(), "batch_id": pa.int64(), "began_at": moment, "watermark": moment,
        "too_late": pa.int64(), "too_late_by_hour": pa.map_(pa.string(), pa.int64()),
    }  # fmt: skip
    if not any("too_late_by_hour" in row for row in rows):
        del schema["too_late_by_hour"]
    full_rows = [{name: row.get(name) for name in schema} for row in rows]
    write_deltalake(settings.lake / "stream_progress", pa.Table.from_pylist(full_rows, pa.schema(schema)))
    if arrived is not None:
        batch = {"source": "web", "log_date": HOUR.day, "click_hours": [str(HOUR)], "written_at": arrived}
        fields = {
            "source": pa.string(), "log_date": pa.date32(), "click_hours": pa.list_(pa.string()), "written_at": moment,
        }  # fmt: skip
        write_deltalake(settings.lake / "stream_batches", pa.Table.from_pylist([batch], pa.schema(fields)))
    measured = live_progress(Lake(None, settings), ["web"], [HOUR])
    facts = as_facts({**measured, "clicks": [of_log_hour(8, 10)], "live_counts": [{"key": "url", **clicks(10)}]})
    hour = live_findings([HOUR], facts, ["url", "country_code"]).get(BY_URL)
    return hour.observed.removeprefix("web: 10 clicks, 10 live") if hour else None


NOT_PASSED = "; not final: the watermark has not passed the hour"
NOT_READ = "; not final: not all of its clicks have been read"
NONE_TOO_LATE = ", 0 too late for live"


def test_an_hour_is_final_when_the_watermark_has_passed_it_and_all_has_been_read(tmp_path: Path) -> None:
    passed = progress(7, 10, 0)
    arrived = HOUR.end.astimezone(UTC) + timedelta(minutes=9)
    assert observed(tmp_path / "a", BEGUN, progress(6, 9, -1)) == NOT_PASSED
    assert observed(tmp_path / "b", BEGUN, passed, arrived=arrived) == NONE_TOO_LATE
    assert observed(tmp_path / "c", BEGUN, passed, arrived=arrived + timedelta(minutes=2)) == NOT_READ
    assert observed(tmp_path / "d", progress(0, 0, None, query="country_code")) is None


def test_too_late_are_those_of_the_hour_or_all_where_a_batch_does_not_tell(tmp_path: Path) -> None:
    told = progress(7, 10, 0, 5, too_late_by_hour=[(str(HOUR), 2), (str(HOUR.plus(-1)), 3)])
    other = progress(8, 11, 5, 4, too_late_by_hour=[(str(HOUR.plus(-1)), 4)])
    earlier = progress(5, 5, -10, 9, too_late_by_hour=[(str(HOUR), 9)])
    assert observed(tmp_path / "a", BEGUN, earlier, told, other) == ", 2 too late for live"
    of_earlier_version = progress(9, 12, 6, 7)
    assert observed(tmp_path / "b", BEGUN, of_earlier_version) == ", 7 too late for live"


def test_a_checkpoint_that_was_begun_again_has_counted_all_once_more(tmp_path: Path) -> None:
    former = progress(40, 10, 5, 3, too_late_by_hour=[(str(HOUR), 3)])
    begun = (BEGUN, former, progress(0, 20, None))
    assert observed(tmp_path / "a", *begun) == NOT_PASSED
    assert observed(tmp_path / "b", *begun, progress(1, 21, 6)) == NONE_TOO_LATE


def test_live_counts_of_sources_that_are_not_streamed_are_not_looked_at(tmp_path: Path) -> None:
    lake = Lake(None, make_settings(tmp_path))
    assert live_progress(lake, [], [HOUR]) == live_progress(lake, ["web"], []) == {}

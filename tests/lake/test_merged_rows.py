"""Rows that are merged into a table by its key, against a dict."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from include.counting import CountKey, live_count_table
from include.hours import Hour
from include.stored_rows import arrow_schema
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.transactions import StreamTransaction
from tests.support.temporary_lake import make_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR = datetime(2026, 3, 1, 22, tzinfo=UTC)
KEYS: dict[CountKey, list[Any]] = {
    "url": ["", "http://a.test/'x", "http://b.test/"],
    "visitor_id": [None, "", "v"],
    "status": [None, 0, 200],
}
#: Of some minutes of three hours, over midnight, and of a key, by its number: its count.
batches = st.lists(
    st.dictionaries(st.tuples(st.sampled_from([0, 1, 60, 130]), st.integers(0, 2)), st.integers(0, 9), min_size=1),
    max_size=5,
)


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(sorted(KEYS)), batches)
def test_a_row_replaces_that_of_its_key_and_no_other(key: CountKey, given: list[dict[tuple[int, int], int]]) -> None:
    table = live_count_table(key)
    expected: dict[tuple[datetime, Any], int] = {}
    with TemporaryDirectory() as name:
        lake = Lake(cast("SparkSession", None), make_settings(Path(name)))
        for batch in given:
            counts = {(HOUR + timedelta(minutes=at), KEYS[key][number]): n for (at, number), n in batch.items()}
            expected |= counts
            rows = [
                {
                    "source": "web", "click_date": at.date(), "click_hour": at.hour, "window_start": at,
                    "window_seconds": 60, key: of, "click_count": n, "bot_click_count": 0, "counted_at": HOUR,
                }
                for (at, of), n in counts.items()
            ]  # fmt: skip
            hours = {Hour.of(row["click_date"], row["click_hour"]) for row in rows}
            # As if it was tried again.
            for _ in range(2):
                lake.merge_click_hours(
                    table, pa.Table.from_pylist(rows, arrow_schema(table, table.column_names)), hours
                )
        if given:
            found = lake.read_rows(table, table.column_names, [])
            assert {(row["window_start"], row[key]): row["click_count"] for row in found} == expected
            assert len(found) == len(expected)


def test_an_older_micro_batch_that_ends_after_a_newer_one_changes_nothing(tmp_path: Path) -> None:
    """As that of a query that was overtaken while it merged."""
    lake = Lake(cast("SparkSession", None), make_settings(tmp_path))
    table = live_count_table("url")

    def merge(stream_id: str, batch_id: int, count: int) -> list[int]:
        row = {
            "source": "web", "click_date": HOUR.date(), "click_hour": HOUR.hour, "window_start": HOUR,
            "window_seconds": 60, "url": "http://a/", "click_count": count, "bot_click_count": 0, "counted_at": HOUR,
        }  # fmt: skip
        rows = pa.Table.from_pylist([row], arrow_schema(table, table.column_names))
        lake.merge_click_hours(table, rows, [Hour.containing(HOUR)], StreamTransaction(stream_id, batch_id))
        return [one["click_count"] for one in lake.read_rows(table, ["click_count"], [])]

    assert merge("live", 3, 30) == [30]
    assert merge("live", 4, 40) == [40]
    assert merge("live", 3, 30) == [40]
    assert merge("live", 4, 41) == [40]
    assert merge("live", 5, 50) == [50]
    assert merge("begun again", 0, 60) == [60]

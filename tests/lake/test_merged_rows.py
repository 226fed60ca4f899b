"""Rows that are merged into a table by its key, against a dict."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from include.counting import CountKey, live_count_table
from include.hours import Hour
from include.stored_rows import arrow_schema
from include.tables import Table
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.merged_rows import merge_few
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
#: Of the minutes of three hours, over midnight, by its number.
MINUTES = [0, 1, 60, 130]
#: Of some minutes and a key, by its number: its count.
batches = st.lists(
    st.dictionaries(st.tuples(st.sampled_from(MINUTES), st.integers(0, 2)), st.integers(0, 9), min_size=1),
    max_size=5,
)
Counts = Mapping[tuple[datetime, Any], int]


def as_rows(table: Table, key: CountKey, counts: Counts) -> pa.Table:
    rows = [
        {
            "source": "web", "click_date": at.date(), "click_hour": at.hour, "window_start": at, "window_seconds": 60,
            key: of, "click_count": n, "bot_click_count": 0, "counted_at": HOUR,
        }
        for (at, of), n in counts.items()
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, arrow_schema(table, table.column_names))


def stored_counts(lake: Lake, table: Table, key: CountKey) -> Counts:
    stored = lake.read_rows(table, ["window_start", key, "click_count"], [])
    counts = {(row["window_start"], row[key]): row["click_count"] for row in stored}
    assert len(counts) == len(stored), "one row of each key"
    return counts


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(sorted(KEYS)), batches)
def test_a_row_replaces_that_of_its_key_and_no_other(
    key: CountKey, micro_batches: list[dict[tuple[int, int], int]]
) -> None:
    table = live_count_table(key)
    expected: dict[tuple[datetime, Any], int] = {}
    with TemporaryDirectory() as name:
        lake = Lake(cast("SparkSession", None), make_settings(Path(name)))
        lake.folder_for_files(table)
        for batch in micro_batches:
            counts = {(HOUR + timedelta(minutes=at), KEYS[key][number]): n for (at, number), n in batch.items()}
            expected |= counts
            hours = {Hour.containing(at) for at, _ in counts}
            # As if it was tried again.
            for _ in range(2):
                merge_few(DeltaTable(lake.uri(table)), table, as_rows(table, key, counts), hours, CommitProperties())
        assert stored_counts(lake, table, key) == expected


@pytest.mark.parametrize("key", KEYS)
def test_many_rows_are_merged_by_tasks_as_few_are_by_the_job(
    key: CountKey, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, lake = live_count_table(key), Lake(spark, make_settings(tmp_path))
    expected: dict[tuple[datetime, Any], int] = {}
    random_numbers = random.Random(7)
    for number, most_bytes in enumerate((1 << 20, 0, 0, 1 << 20, 0)):
        monkeypatch.setattr("spark_jobs.lake.lake.TASK_BYTES", most_bytes)
        keys = random_numbers.sample([(HOUR + timedelta(minutes=at), of) for at in MINUTES for of in KEYS[key]], 6)
        counts = {of_key: random_numbers.randrange(9) for of_key in keys}
        expected |= counts
        rows = spark.createDataFrame(as_rows(table, key, counts))
        lake.merge_click_hours(table, rows, StreamTransaction("live", number))
        lake.merge_click_hours(
            table, rows.withColumn("click_count", rows.click_count + 1), StreamTransaction("live", number)
        )
        assert stored_counts(lake, table, key) == expected
    assert lake.version(table) == 5, "its making, and a commit of each"


@pytest.mark.parametrize("most_bytes", [0, 1 << 20])
def test_an_older_micro_batch_that_ends_after_a_newer_one_changes_nothing(
    most_bytes: int, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of a query that was overtaken while it merged."""
    monkeypatch.setattr("spark_jobs.lake.lake.TASK_BYTES", most_bytes)
    lake, table = Lake(spark, make_settings(tmp_path)), live_count_table("url")

    def merge(stream_id: str, batch_id: int, count: int) -> list[int]:
        rows = spark.createDataFrame(as_rows(table, "url", {(HOUR, "http://a/"): count}))
        lake.merge_click_hours(table, rows, StreamTransaction(stream_id, batch_id))
        return [*stored_counts(lake, table, "url").values()]

    assert merge("live", 3, 30) == [30]
    assert merge("live", 4, 40) == [40]
    assert merge("live", 3, 30) == [40]
    assert merge("live", 4, 41) == [40]
    assert merge("live", 5, 50) == [50]
    assert merge("begun again", 0, 60) == [60]


def test_no_rows_are_no_commit(spark: SparkSession, tmp_path: Path) -> None:
    lake, table = Lake(spark, make_settings(tmp_path)), live_count_table("url")
    none = spark.createDataFrame(as_rows(table, "url", {(HOUR, ""): 1})).limit(0)
    lake.merge_click_hours(table, none, StreamTransaction("live", 0))
    assert lake.version(table) == 0

"""Co-partitioned tables: what differs is found, a new N comes in one commit a table, half-way jobs refuse."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from include.buckets import Layout, bucket_of
from include.errors import QualityError
from include.tables import (
    AGGREGATES,
    CLICKS_BY_COUNTRY_HOURLY,
    CLICKS_BY_URL_HOURLY,
    Table,
)
from tests.support.temporary_lake import TemporaryLake, click

pytestmark = pytest.mark.spark

START, END = "2026-03-01T05", "2026-03-01T07"
COUNTRIES = ("DE", "FR", None)
TABLES = tuple(AGGREGATES)


@pytest.fixture(scope="module")
def counted(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    """Two hours counted; tests copy it."""
    lake = make_lake("counted")
    for hour in (START, "2026-03-01T06"):
        lines = [
            click(f"{hour}-{n}", f"{hour}:{n:02d}:00Z", f"http://shop.test/ä/{n}", geo={"country": COUNTRIES[n % 3]})
            for n in range(30)
        ]
        lake.land(hour, {"a.json": b"".join(lines)})
    lake.run("ingest", START, END)
    lake.run("aggregate", START, END)
    return lake


@pytest.fixture
def lake(counted: TemporaryLake, lake: TemporaryLake) -> TemporaryLake:
    shutil.copytree(counted.settings.lake, lake.settings.lake)
    return lake


def _stored(lake: TemporaryLake, table: Table, version: int | None = None) -> DeltaTable:
    return DeltaTable(str(lake.settings.lake / table.name), version=version)


def _rows(stored: DeltaTable) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Rows, counted_at included, by click hour and key; without buckets."""
    rows = stored.to_pyarrow_table().drop_columns(["bucket", "buckets"]).to_pylist()
    return {(row["click_date"], row["click_hour"], row.get("url", row.get("country_code"))): row for row in rows}


def _assert_buckets(stored: DeltaTable, key: str, buckets: int) -> None:
    rows = stored.to_pyarrow_table(columns=[key, "bucket", "buckets"]).to_pylist()
    assert {row["buckets"] for row in rows} == {buckets}
    assert [row["bucket"] for row in rows] == [bucket_of(row[key], buckets) for row in rows]


def _repartition(lake: TemporaryLake, buckets: int) -> list[str]:
    from spark_jobs.aggregate.repartition import repartition as run

    return run(lake.spark, lake.settings, buckets)


def _differences(lake: TemporaryLake) -> list[tuple[str, str, str]]:
    from spark_jobs.aggregate.co_partitioning import differences
    from spark_jobs.lake.lake import Lake

    return [
        (difference.table, difference.subject, difference.observed)
        for difference in differences(Lake(lake.spark, lake.settings), TABLES)
    ]


def _alter(lake: TemporaryLake, table: Table, statement: str) -> None:
    path = f"delta.`{lake.settings.lake / table.name}`"
    lake.spark.sql(statement.format(table=path)).collect()


@pytest.mark.path
def test_new_number_of_buckets_changes_nothing_else_and_takes_one_commit(lake: TemporaryLake) -> None:
    before = {table: _stored(lake, table) for table in TABLES}
    lines = _repartition(lake, 6)
    assert lines[:2] == [f"{table.name}: 6 buckets, 4 before" for table in TABLES]
    for table, old in before.items():
        new = _stored(lake, table)
        assert new.version() == old.version() + 1
        assert _rows(new) == _rows(old)
        assert len(_rows(new)) == new.to_pyarrow_table().num_rows
        assert table.bucket_key is not None
        _assert_buckets(new, table.bucket_key, 6)
        _assert_as_declared(new, table)
        assert new.metadata() == old.metadata()
        # Time travel: the version before is whole, with its own number of buckets.
        _assert_buckets(_stored(lake, table, old.version()), table.bucket_key, 4)
        travelled = lake.spark.read.format("delta").option("versionAsOf", old.version())
        assert travelled.load(str(lake.settings.lake / table.name)).count() == len(_rows(old))
    assert _differences(lake) == []
    # A table is made with the number that the others have, whatever the setting says.
    shutil.rmtree(lake.settings.lake / CLICKS_BY_COUNTRY_HOURLY.name)
    lake.run("aggregate", START, END)
    _assert_buckets(_stored(lake, CLICKS_BY_COUNTRY_HOURLY), "country_code", 6)


def _assert_as_declared(stored: DeltaTable, table: Table) -> None:
    fields = json.loads(stored.schema().to_json())["fields"]
    columns = [(field["name"], field["nullable"], field["metadata"].get("comment")) for field in fields]
    assert columns == [(column.name, not column.required, column.comment) for column in table.columns]
    assert stored.metadata().partition_columns == list(table.partitioned_by)
    assert stored.metadata().description == f"One row: {table.grain}"
    properties = stored.metadata().configuration
    assert properties["delta.dataSkippingStatsColumns"] == ",".join(table.statistics)


def test_stopped_between_the_tables_jobs_refuse_and_running_it_again_finishes(
    lake: TemporaryLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spark_jobs.lake.lake import Lake
    from spark_jobs.publish.shown_movers import read_movers

    before = {table: _rows(_stored(lake, table)) for table in TABLES}
    replace = Lake.replace

    def replace_the_first(self: Lake, table: Table, *rest: Any) -> None:
        if table == CLICKS_BY_COUNTRY_HOURLY:
            raise KeyboardInterrupt
        replace(self, table, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(Lake, "replace", replace_the_first)
        with pytest.raises(KeyboardInterrupt):
            _repartition(lake, 6)
    first = _stored(lake, CLICKS_BY_URL_HOURLY)
    _assert_buckets(first, "url", 6)
    _assert_buckets(_stored(lake, CLICKS_BY_COUNTRY_HOURLY), "country_code", 4)

    assert _differences(lake) == [(CLICKS_BY_COUNTRY_HOURLY.name, "number of buckets", "4")]
    command = "clickmill repartition --buckets 6"
    refused = f"{CLICKS_BY_COUNTRY_HOURLY.name}: number of buckets: found 4; expected 6; to fix it: {command}$"
    with pytest.raises(QualityError, match=refused):
        lake.run("aggregate", START, END)
    with pytest.raises(QualityError, match=refused):
        read_movers(lake.spark, lake.settings, date(2026, 3, 1))
    with pytest.raises(QualityError, match="same number of buckets"):
        lake.run("validate", START, END)

    assert _repartition(lake, 6)[:2] == [
        f"{CLICKS_BY_URL_HOURLY.name}: has 6 buckets already",
        f"{CLICKS_BY_COUNTRY_HOURLY.name}: 6 buckets, 4 before",
    ]
    assert _stored(lake, CLICKS_BY_URL_HOURLY).version() == first.version()
    _assert_buckets(_stored(lake, CLICKS_BY_COUNTRY_HOURLY), "country_code", 6)
    assert {table: _rows(_stored(lake, table)) for table in TABLES} == before
    assert _differences(lake) == []
    lake.run("aggregate", START, END)


def test_what_differs_in_rows_is_found(lake: TemporaryLake) -> None:
    url, country = CLICKS_BY_URL_HOURLY, CLICKS_BY_COUNTRY_HOURLY
    assert _differences(lake) == []
    _alter(lake, url, "UPDATE {table} SET bucket = (bucket + 1) % 4 WHERE click_hour = 6 AND url LIKE '%/1_'")
    # France has its row twice in an hour, in two buckets.
    again = "SELECT * EXCEPT (bucket, buckets, counted_at), (bucket + 1) % 4, buckets, counted_at FROM {table}"
    france = "click_hour = 5 AND country_code = 'FR'"
    _alter(lake, country, f"INSERT INTO {{table}} {again} WHERE {france}")
    germany = "UPDATE {table} SET buckets = 7, bucket = pmod(hash(country_code), 7) WHERE country_code = 'DE'"
    _alter(lake, country, germany)
    assert _differences(lake) == [
        (country.name, "number of buckets", "4 to 7"),
        (url.name, "bucket", "10 of 60 rows with another, in click hours 2026-03-01T06 to 2026-03-01T06"),
        (country.name, "bucket", "1 of 7 rows with another, in click hours 2026-03-01T05 to 2026-03-01T05"),
        (
            country.name,
            "buckets of a key",
            "1 keys with two in a click hour, in click hours 2026-03-01T05 to 2026-03-01T05",
        ),
    ]
    with pytest.raises(QualityError, match=f"{country.name}: number of buckets: found 4 to 7; expected 4"):
        lake.run("aggregate", START, END)
    with pytest.raises(QualityError, match="expected all rows of the table per country have the same number"):
        lake.run("validate", START, END)
    # As many buckets as before: what is wrong is fixed all the same, but for the second row.
    _repartition(lake, 4)
    lake.run("aggregate", START, END)
    assert _differences(lake) == []


def test_a_table_without_the_column_is_refused_and_gets_it(lake: TemporaryLake) -> None:
    country = CLICKS_BY_COUNTRY_HOURLY
    stored = _stored(lake, country)
    before, rows = _rows(stored), stored.to_pyarrow_table().drop_columns(["buckets"])
    shutil.rmtree(lake.settings.lake / country.name)
    statistics = {"delta.dataSkippingStatsColumns": "bucket"}
    write_deltalake(
        str(lake.settings.lake / country.name),
        rows,
        partition_by=list(country.partitioned_by),
        configuration=statistics,
    )
    assert (country.name, "number of buckets", "not stated") in _differences(lake)
    with pytest.raises(QualityError, match="found not stated; expected 4; to fix it: clickmill repartition"):
        lake.run("aggregate", START, END)
    assert _repartition(lake, 4)[1] == f"{country.name}: 4 buckets, not stated before"
    assert _differences(lake) == []
    assert _rows(_stored(lake, country)) == before
    lake.run("aggregate", START, END)
    assert _differences(lake) == []


def test_numbers_of_buckets_are_compared_and_key_types_where_tables_have_the_same_key() -> None:
    from include.tables import Column, hourly_table
    from spark_jobs.aggregate.co_partitioning import layout_differences

    clicks, orders, others = (
        hourly_table(name, Column(key, key_type, "The key."), "of it")
        for name, key, key_type in (
            ("clicks", "user", "STRING"), ("orders", "user", "BIGINT"), ("others", "status", "INT"),
        )
    )  # fmt: skip
    layouts = {table: Layout(4, 4, str(table.key_type)) for table in (clicks, orders, others)}
    differences = layout_differences(layouts, 4)
    assert [
        (difference.table, difference.subject, difference.observed, difference.expected) for difference in differences
    ] == [("orders", "type of user", "BIGINT", "STRING")]
    assert layout_differences({clicks: layouts[clicks], others: layouts[others]}, 4) == []
    mixed = layout_differences({clicks: Layout(2, 4, "STRING")}, 4)
    assert [(difference.subject, difference.observed, difference.expected) for difference in mixed] == [
        ("number of buckets", "2 to 4", "4")
    ]

"""Rows read without Spark: what the filters let through, whatever they are on."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from include.stored_rows import ARROW_TYPES, StoredLake
from include.tables import INGEST_ACCOUNTING

COLUMNS = ("source", "log_date", "log_hour", "lines")
HOURS = [
    {"source": source, "log_date": date(2026, 2, day), "log_hour": hour, "lines": day * 100 + hour}
    for source in ("web", "a b%20=/ü")
    for day in (1, 2, 10)
    for hour in (2, 10)
]
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    ">=": operator.ge,
    "<=": operator.le,
    "in": lambda value, values: value in values,
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("a lake")
    empty: dict[str, Any] = {"BIGINT": 0, "INT": 0, "BOOLEAN": True, "TIMESTAMP": datetime(2026, 3, 1, tzinfo=UTC)}
    columns = {
        column.name: pa.array(
            [hour.get(column.name, empty.get(column.type, [])) for hour in HOURS], ARROW_TYPES[column.type]
        )
        for column in INGEST_ACCOUNTING.columns
    }
    place = folder / INGEST_ACCOUNTING.name
    write_deltalake(place, pa.table(columns), partition_by=list(INGEST_ACCOUNTING.partitioned_by))
    return folder


@pytest.mark.parametrize(
    "where",
    [
        [],
        [("source", "=", "web")],
        [("source", "=", "a b%20=/ü"), ("log_date", "in", [date(2026, 2, 2), date(2026, 2, 10)])],
        [("log_date", ">=", date(2026, 2, 2))],
        [("log_date", "<=", date(2026, 2, 2)), ("log_hour", "=", 10)],
        [("log_hour", ">=", 10)],
        [("log_hour", "in", [2]), ("lines", ">=", 200)],
        [("log_date", "in", [])],
        [("source", "=", "none")],
    ],
)
def test_rows_are_those_for_which_all_filters_hold(lake: Path, where: list[tuple[str, str, Any]]) -> None:
    expected = [hour for hour in HOURS if all(OPERATORS[sign](hour[name], value) for name, sign, value in where)]
    rows = StoredLake(lake).read_rows(INGEST_ACCOUNTING, COLUMNS, where)
    assert sorted(rows, key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize(
    "conditions",
    [
        [],
        [[("log_date", "=", date(2026, 2, 1)), ("log_hour", "in", [10])], [("log_date", "=", date(2026, 2, 10))]],
        [[("log_date", "=", date(2026, 2, 1))], [("source", "=", "web"), ("log_hour", "=", 2)]],
        [[("log_date", "in", [])], [("lines", ">=", 1002)]],
        [[("log_date", "in", [])]],
    ],
    ids=repr,
)
def test_any_of_several_conditions_may_let_a_row_through(lake: Path, conditions: list[Any]) -> None:
    rows = StoredLake(lake).open_table(INGEST_ACCOUNTING, COLUMNS, conditions).read_all().to_pylist()
    expected = [
        hour
        for hour in HOURS
        if any(all(OPERATORS[how](hour[name], value) for name, how, value in all_of) for all_of in conditions)
    ]
    assert sorted(rows, key=repr) == sorted(expected, key=repr)

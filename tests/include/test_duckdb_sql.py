"""A query of lines is planned once, and reads each table that it is asked for."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from include.duckdb_sql import run_on_lines, run_sql

TWICE = "SELECT 2 * n::INT AS twice FROM lines"


def numbers(*texts: str | None) -> pa.Table:
    return pa.table({"n": pa.array(texts, pa.string())})


def twice(lines: pa.Table) -> list[int | None]:
    doubles: list[int | None] = run_on_lines(TWICE, lines)["twice"].to_pylist()
    return doubles


def test_each_table_is_read() -> None:
    chunked = pa.concat_tables([numbers("1", None), numbers(), numbers("3")])
    tables = [numbers("1", "2"), numbers(), chunked, chunked.slice(1, 2), numbers("1", "2")]
    assert [twice(table) for table in tables] == [[2, 4], [], [2, None, 6], [None, 6], [2, 4]]


def test_columns_of_another_type_are_another_plan() -> None:
    assert twice(numbers("7")) == twice(pa.table({"n": [7]})) == [14]
    assert twice(pa.table({"n": pa.array(["7"]).dictionary_encode()})) == [14]


def test_a_table_that_fails_harms_no_other() -> None:
    for _ in range(2):
        with pytest.raises(duckdb.ConversionException, match="seven"):
            twice(numbers("1", "seven"))
        assert twice(numbers("1")) == [2]


def test_threads_have_their_own_tables() -> None:
    with ThreadPoolExecutor(8) as threads:
        columns = threads.map(lambda number: twice(numbers(*[str(number)] * 3000)), range(200))
        assert [set(each) for each in columns] == [{2 * number} for number in range(200)]


def test_an_hour_of_lines_is_that_of_a_query_planned_anew() -> None:
    sql = "SELECT n, count(*) OVER () AS rows FROM lines WHERE n LIKE '%1%'"
    for start in (0, 5000):
        lines = numbers(*map(str, range(start, start + 5000)))
        assert run_on_lines(sql, lines).equals(run_sql(sql, lines=lines))


def test_a_process_ends_in_silence() -> None:
    repository = Path(__file__).resolve().parents[2]
    code = "from tests.include.test_duckdb_sql import *; print(twice(numbers('4')))"
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[8]\n", "")

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from include.log_hours import Hour
from include.sources import JsonFields, Source
from spark_jobs.ingest.json_fields import FIRST_SAMPLED_LINES, SAMPLED_EVERY, sampled_fields
from spark_jobs.ingest.sampled_lines import LOG_HOUR, line_shapes
from tests.ingest.lines import arrivals_frame, lines_table

pytestmark = pytest.mark.spark

WEB = Source(name="web", format="json", fields=JsonFields(time="ts", url="url"))


def _parsed(spark: SparkSession, lines: dict[int, bytes], source: Source = WEB) -> Any:
    hour = Hour.parse("2026-03-01T05")
    return arrivals_frame(spark, source, [lines_table([*lines.values()], hour=hour, numbers=[*lines])])


def test_first_lines_and_every_hundredth_are_sampled(spark: SparkSession) -> None:
    parsed = _parsed(spark, {line: b'{"line": %d}' % line for line in range(1, 1001)})
    sampled = {json.loads(row["sampled"])["line"] for row in parsed.where("sampled IS NOT NULL").collect()}
    assert sampled == {n for n in range(1, 1001) if n <= FIRST_SAMPLED_LINES or n % SAMPLED_EVERY == 0}


def test_only_objects_are_sampled_whatever_else_is_wrong_with_them(spark: SparkSession) -> None:
    lines = {
        1: b"nonsense", 2: b"", 3: b"[1]", 4: b'{"url": "no time"}', 5: b'{"two": 1}{"objects": 2}',
        6: b' {"space": 1} \r', 7: b'{"not UTF-8": "\xff"}',
    }  # fmt: skip
    parsed = _parsed(spark, lines)
    assert {row["line"] for row in parsed.where("sampled IS NOT NULL").collect()} == {4, 6}
    access = Source(name="access", format="common", base_url="http://a.test")
    line = b'192.0.2.1 - - [01/Mar/2026:05:00:00 +0000] "GET / HTTP/1.1" 200 5'
    assert [row["sampled"] for row in _parsed(spark, {1: line}, access).collect()] == [None]


def test_a_name_twice_has_no_shape(spark: SparkSession) -> None:
    shapes = line_shapes(_parsed(spark, {1: b'{"a": 1, "a": 2, "b": 3}', 2: b'{"a": 1}'}), LOG_HOUR).collect()
    assert [(row["example"], row["lines"]) for row in shapes] == [('{"a": 1}', 1)]


def test_lines_of_one_shape_are_one_row(spark: SparkSession) -> None:
    documents = [{"id": f"{n}", "n": n, "geo": {"c": "DE"} if n % 2 else None, "l": [1, "x"]} for n in range(10)]
    parsed = _parsed(spark, {n + 1: json.dumps(document).encode() for n, document in enumerate(documents)})
    rows = line_shapes(parsed, LOG_HOUR).collect()
    assert sorted((row["example"], row["lines"]) for row in rows) == [
        (json.dumps(documents[0]), 5), (json.dumps(documents[1]), 5),
    ]  # fmt: skip
    # Told from the shapes, the fields are those of all lines.
    every = sampled_fields((json.dumps(document), 1) for document in documents)
    of_shapes = sampled_fields((row["example"], row["lines"]) for row in rows)
    assert {key: seen.lines for key, seen in of_shapes.fields.items()} == {
        key: seen.lines for key, seen in every.fields.items()
    }
    assert {Hour.of(row["log_date"], row["log_hour"]) for row in rows} == {Hour.parse("2026-03-01T05")}

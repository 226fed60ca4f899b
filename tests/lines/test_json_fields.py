from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.lines.json_fields import (
    MAX_DEPTH,
    MAX_EXAMPLE_CHARACTERS,
    MAX_FIELDS,
    MAX_PATH_CHARACTERS,
    LineShapes,
    SampledFields,
    is_within,
)


def fields_of(lines: Iterable[str]) -> SampledFields:
    shapes = LineShapes()
    for line in lines:
        shapes.add(line)
    return shapes.fields()


def _rows(*documents: Any, left_out: tuple[str, ...] = (), hidden: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
    """Path, type, lines and example of each field."""
    sampled = fields_of(map(json.dumps, documents)).less(left_out, hidden)
    return [(row["path"], row["type"], row["lines"], row["example"]) for row in sampled.as_rows()]


def test_each_field_with_its_types_and_an_example() -> None:
    first = {"id": "b", "geo": {"country": "DE", "lat": 1.5}, "n": 1, "ok": True, "tags": ["x", 2, "y"], "gone": None}
    second = {"id": "a", "geo": None, "items": [{"price": 1}, {"price": 2.5}], "n": 10}
    assert _rows(first, second) == [
        ("geo", "null", 1, None),
        ("geo", "object", 1, None),
        ("geo.country", "string", 1, "DE"),
        ("geo.lat", "number", 1, "1.5"),
        ("gone", "null", 1, None),
        ("id", "string", 2, "a"),
        ("items", "array", 1, None),
        ("items[]", "object", 1, None),
        ("items[].price", "integer", 1, "1"),
        ("items[].price", "number", 1, "2.5"),
        ("n", "integer", 2, "1"),
        ("ok", "boolean", 1, "true"),
        ("tags", "array", 1, None),
        ("tags[]", "integer", 1, "2"),
        ("tags[]", "string", 1, "y"),
    ]


def test_a_shape_counts_for_all_its_lines() -> None:
    sampled = fields_of(['{"a": 1}'] * 40 + ['{"a": 1, "b": 2}'] * 2)
    assert sampled.lines == 42
    assert [(row["path"], row["lines"]) for row in sampled.as_rows()] == [("a", 42), ("b", 2)]


def test_fields_of_two_parts_are_those_of_all_their_lines() -> None:
    documents = [{"a": n, "b": "x" if n % 2 else None, "c": {"d": [n]}} for n in range(8)] + [{"e": "z"}, {"e": "y"}]
    lines = [json.dumps(document) for document in documents]
    every = fields_of(lines)
    parts = [fields_of(lines[:3]), fields_of(lines[3:9]), fields_of(lines[9:])]
    stored = [SampledFields.of_rows(part.lines, part.as_rows()) for part in parts]
    assert stored[2] + stored[0] + stored[1] == every
    assert stored == parts, "adding changes none of them"


def test_what_this_parser_does_not_take_is_left_out() -> None:
    assert fields_of(["{a: 1}", "[1]", '{"a": "\\ud800"}', "[" * 2000]).lines == 0


def test_of_a_name_that_comes_twice_the_last_value_counts() -> None:
    assert fields_of(['{"a": 1, "a": "x", "b": 3}']) == fields_of(['{"b": 3, "a": "x"}'])


def test_paths_stand_for_what_is_inside_them() -> None:
    document = {"user": {"email": "a@b.test", "tags": ["x"]}, "username": "u", "ip": "192.0.2.1"}
    assert [row[0] for row in _rows(document, left_out=("user",))] == ["ip", "username"]
    assert {row[0]: row[3] for row in _rows(document, hidden=("ip", "user.tags"))} == {
        "ip": None, "user": None, "user.email": "a@b.test", "user.tags": None, "user.tags[]": None, "username": "u",
    }  # fmt: skip
    assert not is_within("user", ("user.email",))


def test_what_a_line_can_bring_into_the_table_is_bounded() -> None:
    deep: Any = "bottom"
    for _ in range(500):
        deep = {"d": deep}
    rows = _rows(
        {"x" * 5000: "y" * 5000, "deep": deep} | {f"made-up-{n}": n for n in range(5000)}, {"last": "z\x1b[2J"}
    )
    assert len(rows) == MAX_FIELDS
    rows = _rows({"x" * 5000: "y" * 5000, "deep": deep, "last": "z\x1b[2J"})
    assert max(len(row[0]) for row in rows) == MAX_PATH_CHARACTERS
    assert max(len(row[3] or "") for row in rows) == MAX_EXAMPLE_CHARACTERS
    assert sum(row[0].startswith("deep") for row in rows) == MAX_DEPTH + 1
    assert "z\\x1b[2J" in {row[3] for row in rows}


def test_fields_in_most_lines_are_kept() -> None:
    documents = [{"everywhere": 1} | {f"{n}-{m}": 1 for m in range(200)} for n in range(3)]
    assert ("everywhere", "integer", 3, "1") in _rows(*documents)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.sampled_from("abc"), inside, max_size=3),
    max_leaves=8,
)  # fmt: skip
DOCUMENTS = st.lists(st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4), max_size=6)
NAMES = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def _oracle(value: Any, path: str) -> set[tuple[str, str]]:
    fields = {(path, NAMES[type(value)])} if path else set()
    if isinstance(value, dict):
        return fields.union(*(_oracle(v, f"{path}.{k}".lstrip(".")) for k, v in value.items()))
    if isinstance(value, list):
        return fields.union(*(_oracle(v, f"{path}[]") for v in value))
    return fields


@given(DOCUMENTS)
def test_lines_with_a_field_are_counted(documents: list[dict[str, Any]]) -> None:
    expected = Counter(key for document in documents for key in _oracle(document, ""))
    assert {row[:2]: row[2] for row in _rows(*documents)} == expected


@given(DOCUMENTS)
def test_order_of_lines_does_not_matter(documents: list[dict[str, Any]]) -> None:
    assert _rows(*documents) == _rows(*reversed(documents))

"""JSON lines: which are one JSON object each, and the SQL by which DuckDB takes the mapped fields out of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.duckdb_sql import quoted
from spark_jobs.lines.extraction import Extraction

# DuckDB's parser (yyjson) is strict but for two things: a comma before a closing bracket, and NaN and Infinity. Lines
# with what looks like one of them are looked at again without their texts. Three patterns, each with one first
# character: the matcher finds that much faster than one of several.
_NO_NUMBER = r"[ \t\r\n]*-?[nNiI][aAnN][nNfF]"
_SUSPICIOUS = (rf",[ \t\r\n]*[}}\]]|,{_NO_NUMBER}", rf":{_NO_NUMBER}", rf"\[{_NO_NUMBER}")
_TEXT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_LENIENT = re.compile(r",\s*[}\]]|nan|inf", re.IGNORECASE)


def strict_json(texts: pa.StringArray) -> pa.StringArray:
    """The texts, null for those that only a lenient parser would take for JSON."""
    suspicious = np.zeros(len(texts), bool)
    for pattern in _SUSPICIOUS:
        matches = pc.match_substring_regex(texts, pattern)
        suspicious |= matches.fill_null(False).to_numpy(zero_copy_only=False)
    if not suspicious.any():
        return texts
    lenient = [n for n in np.flatnonzero(suspicious) if _LENIENT.search(_TEXT.sub('""', texts[int(n)].as_py()))]
    is_strict = np.ones(len(texts), bool)
    is_strict[lenient] = False
    return pc.if_else(pa.array(is_strict), texts, None)


def extraction(paths: Mapping[str, tuple[str, ...]]) -> Extraction:
    """How the mapped fields are taken out of JSON objects.

    A value of another type than text is its JSON; of a name that comes twice in an object the first is taken.
    """
    trees: list[dict[str, Any]] = []
    values = {}
    for role, path in paths.items():
        number = _add(trees, path)
        values[role] = f"object['tree{number}']" + "".join(f"[{quoted(part)}]" for part in path)
    is_object = "json_valid(text) AND ltrim(text, ' \t\r\n') LIKE '{%'"
    parts = ", ".join(f"tree{n} := json_transform(text, {quoted(json.dumps(tree))})" for n, tree in enumerate(trees))
    table = f"SELECT CASE WHEN {is_object} THEN struct_pack({parts}) END AS object FROM lines"
    return Extraction("not_json", table, "object IS NOT NULL", values, strict_json)


def _add(trees: list[dict[str, Any]], path: tuple[str, ...]) -> int:
    """Add a path to the first tree of names that takes it; its number.

    The names of a DuckDB struct differ in more than their case, those of JSON objects need not.
    """
    number = next((number for number, tree in enumerate(trees) if _fits(tree, path)), len(trees))
    if number == len(trees):
        trees.append({})
    tree = trees[number]
    for part in path[:-1]:
        tree = tree.setdefault(part, {})
    tree[path[-1]] = "VARCHAR"
    return number


def _fits(tree: dict[str, Any], path: tuple[str, ...]) -> bool:
    for part in path:
        if part not in tree:
            return part.lower() not in map(str.lower, tree)
        tree = tree[part]
    return True

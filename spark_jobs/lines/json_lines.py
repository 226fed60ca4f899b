"""JSON lines: which are one JSON object each, and the SQL by which DuckDB takes the mapped fields out of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.duckdb_sql import quoted_name, run_sql
from include.source_fields import Alternatives, FieldPath
from spark_jobs.lines.columns import as_array
from spark_jobs.lines.extraction import LESS, Extraction, first_text
from spark_jobs.lines.json_documents import Documents, Lists
from spark_jobs.lines.json_repairs import HALF_PAIR, repaired
from spark_jobs.lines.targets import part_of_request

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


def extraction(fields: Mapping[str, Alternatives]) -> Extraction:
    """How the mapped fields are taken out of JSON objects.

    A value of another type than text is its JSON, but a list of one element is that element. ``-`` is a value that is
    not there, as servers write it. A path that ends in no value goes on where the value on its way is a text with JSON
    in it, and is the name of a field as a whole, points and all. Of a name that comes twice in an object the first is
    taken.
    """
    plain = replace(_extraction(fields, more_care=False), prepared=strict_json)
    careful = _extraction(fields, more_care=True)
    values = ", ".join(careful.values.values())
    are_half = f"SELECT contains(concat_ws(' ', {values}), '{HALF_PAIR}') AS is_half FROM ({careful.table})"
    # Only what is no JSON may have to be repaired.
    repairing = replace(careful, prepared=lambda texts: _readable(texts, are_half))
    return replace(plain, more_care=careful, otherwise=repairing)


def _extraction(fields: Mapping[str, Alternatives], *, more_care: bool) -> Extraction:
    documents = Documents([path for role in fields.values() for joined in role for path in joined], more_care)
    values = {}
    for role, alternatives in fields.items():
        lists: Lists = "not looked for" if not more_care else "joined" if role == "client_address" else "as JSON"
        values[role] = _value(role, alternatives, partial(documents.value, lists=lists))
    if not more_care:
        values[LESS] = "has_less"
    named = ", ".join(f"{value} AS {quoted_name(role)}" for role, value in values.items())
    table = f"SELECT object IS NOT NULL AS is_formed, {named} FROM ({documents.table()})"
    return Extraction("not_json", table, "is_formed", {role: quoted_name(role) for role in values})


def _readable(texts: pa.StringArray, are_half: str) -> pa.StringArray:
    """The texts, repaired; null for what is no JSON, or has half a surrogate pair in a mapped field.

    As text it would have to be something else: two ids would become one.
    """
    strict = strict_json(texts)
    texts = repaired(strict)
    if texts is strict:
        return texts
    is_repaired = pc.not_equal(texts, strict).fill_null(False)
    is_half = run_sql(are_half, lines=pa.table({"text": texts.filter(is_repaired)}))["is_half"]
    return pc.if_else(pc.replace_with_mask(is_repaired, is_repaired, as_array(is_half).fill_null(False)), None, texts)


def _value(role: str, alternatives: Alternatives, value_at: Callable[[FieldPath], str]) -> str:
    """The SQL of a role's text: of the first of its fields that is there and neither blank nor ``-``."""
    text = first_text([" || ' ' || ".join(map(value_at, joined)) for joined in alternatives])
    if role != "url":
        return text
    # A request line: it begins with a letter before those of http, which is found quickly.
    target = f"coalesce(nullif({part_of_request(text, 2)}, ''), {text})"
    return f"CASE WHEN {text} < 'a' THEN {target} ELSE {text} END"

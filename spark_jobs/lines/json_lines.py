"""JSON lines: which are one JSON object each, and the SQL by which DuckDB takes the mapped fields out of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.duckdb_sql import quoted_name
from include.source_fields import Alternatives
from spark_jobs.lines.columns import as_numpy, may_contain
from spark_jobs.lines.extraction import LESS, Extraction, first_text
from spark_jobs.lines.json_documents import Care, Documents, Lists
from spark_jobs.lines.json_repairs import HALF_PAIR, repaired

# DuckDB's parser (yyjson) is strict but for two things: a comma before a closing bracket, and NaN and Infinity. Lines
# with what looks like one of them are looked at again without their texts. Three patterns, each with one first
# character: the matcher finds that much faster than one of several.
_NO_NUMBER = r"[ \t\r\n]*-?[nNiI][aAnN][nNfF]"
_SUSPICIOUS = (rf",[ \t\r\n]*[}}\]]|,{_NO_NUMBER}", rf":{_NO_NUMBER}", rf"\[{_NO_NUMBER}")
_TEXT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_LENIENT = re.compile(r",\s*[}\]]|nan|inf", re.IGNORECASE)

_SPACE = " \t\r\n"
#: What a line has where a text of it has an object or a list in it, as JSON: its first quotation mark has a backslash
#: before it, as has what else is no blank there. Each pattern with one first character, too.
_JSON_IN_TEXT = (r"\{ *\\", r"\[ *\\", r"\\u00[57][bB]")


def strict_json(texts: pa.StringArray) -> pa.StringArray:
    """The texts, null for those that only a lenient parser would take for JSON."""
    suspicious = _match_any(texts, _SUSPICIOUS)
    if not suspicious.any():
        return texts
    lenient = [n for n in np.flatnonzero(suspicious) if _LENIENT.search(_TEXT.sub('""', texts[int(n)].as_py()))]
    is_strict = np.ones(len(texts), bool)
    is_strict[lenient] = False
    return pc.if_else(pa.array(is_strict), texts, None)


def _match_any(texts: pa.StringArray, patterns: Iterable[str]) -> np.ndarray:
    result = np.zeros(len(texts), bool)
    for pattern in patterns:
        result |= as_numpy(pc.match_substring_regex(texts, pattern).fill_null(False))
    return result


def _whole_objects(texts: pa.StringArray) -> pa.StringArray:
    """The same, null too for those that do not begin and end as an object."""
    texts = strict_json(texts)
    ends = pc.or_(pc.ends_with(texts, "}"), pc.ends_with(texts, "}\n"))
    whole = as_numpy(pc.and_(pc.starts_with(texts, "{"), ends).fill_null(False)).copy()
    if not whole.all():
        others = pc.ascii_trim(texts.filter(pa.array(~whole)), _SPACE)
        whole[~whole] = as_numpy(pc.and_(pc.starts_with(others, "{"), pc.ends_with(others, "}")).fill_null(False))
    return texts if whole.all() else pc.if_else(pa.array(whole), texts, None)


def extraction(fields: Mapping[str, Alternatives]) -> Extraction:
    """How the mapped fields are taken out of JSON objects.

    A value of another type than text is its JSON, but a list of one element is that element. ``-`` is a value that is
    not there, as servers write it. A path that ends in no value goes on where the value on its way is a text with JSON
    in it, and is the name of a field as a whole, points and all. Of a name that comes twice in an object the first is
    taken.

    What nearly all lines have is looked for first: see ``Care``.
    """
    return _in_turn(tuple(fields.items()))


@cache
def _in_turn(fields: tuple[tuple[str, Alternatives], ...]) -> Extraction:
    of = dict(fields)
    careful = _without_half_pairs(_extraction(of, "texts"))
    # Only what is no JSON may have to be repaired.
    repairing = replace(careful, prepared=lambda texts: repaired(strict_json(texts)))
    more_care = ((_have_text_or_list, careful),)
    plain = _extraction(of, "plain", are_objects=True)
    checked = _extraction(of, "plain")
    return replace(plain, prepared=_whole_objects, if_error=checked, more_care=more_care, otherwise=repairing)


def _without_half_pairs(careful: Extraction) -> Extraction:
    """The same, where half of a surrogate pair in a mapped field makes a line no JSON, or one that is inside of a text.

    As text it would have to be something else: two ids would become one.
    """
    values = ", ".join(careful.values.values())
    is_half = f"contains(concat_ws(' ', {values}), '{HALF_PAIR}')"
    return replace(careful, is_formed=f"{careful.is_formed} AND NOT {is_half}")


def _extraction(fields: Mapping[str, Alternatives], care: Care, *, are_objects: bool = False) -> Extraction:
    paths = [path for role in fields.values() for joined in role for path in joined]
    documents = Documents(paths, care, are_objects=are_objects)
    values, less = {}, []
    for role, alternatives in fields.items():
        lists: Lists = "not looked for" if care != "texts" else "joined" if role == "client_address" else "as JSON"
        value_at = partial(documents.value, lists=lists)
        texts = [" || ' ' || ".join(map(value_at, joined)) for joined in alternatives]
        values[role] = first_text(texts)
        if any(len(path) > 1 for joined in alternatives for path in joined):
            less.append(f"coalesce(trim({texts[0]}, ' '), '') = ''" if len(texts) > 1 else f"{texts[0]} IS NULL")
    if less and care != "texts":
        values[LESS] = " OR ".join(less)
    named = ", ".join(f"{value} AS {quoted_name(role)}" for role, value in values.items())
    table = f"SELECT is_object AS is_formed, {named} FROM ({documents.table()})"
    return Extraction("not_json", table, "is_formed", {role: quoted_name(role) for role in values})


def _have_text_or_list(lines: pa.StringArray, columns: Mapping[str, pa.Array]) -> np.ndarray:
    """Of which lines a value may be a list, or inside of a text."""
    result = np.zeros(len(lines), bool)
    if LESS in columns:
        result |= as_numpy(columns[LESS].fill_null(False))
    if result.any():
        result[result] = _may_have_text(lines if result.all() else lines.filter(pa.array(result)))
    if may_contain(lines, "["):
        for column in columns.values():
            if pa.types.is_string(column.type):
                result |= as_numpy(pc.starts_with(column, "[").fill_null(False))
    return result


def _may_have_text(lines: pa.StringArray) -> np.ndarray:
    """Which lines may have JSON in a text, where its quotation marks are written with backslashes."""
    return _match_any(lines, _JSON_IN_TEXT if may_contain(lines, "\\") else ())

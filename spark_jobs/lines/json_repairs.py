r"""JSON that is not quite JSON, where what is meant is known: nginx's escapes, half pairs, schema ids, prefixes.

* nginx writes some bytes as ``\x22``, unless its format says ``escape=json``:
  https://nginx.org/en/docs/http/ngx_http_log_module.html#log_format
* JSON.stringify writes half of a surrogate pair, ``\ud83d``, of a text that was cut there: RFC 8259, section 8.2.
* Confluent's serializers put five bytes before a record, a zero and the schema's id:
  https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from include.duckdb_sql import quoted, run_on_lines
from spark_jobs.lines.columns import as_array
from spark_jobs.lines.prefix_patterns import JSON_PREFIX

#: Stands for half of a surrogate pair: no character, which JSON may have.
HALF_PAIR = "\ufdd0"
_BACKSLASH = "\ufdd1"
_ODD = r"\\(?:x|u[dD][89a-fA-F])"
_SCHEMA_ID_BYTES = 5

#: In steps, each of the one before. Escaped backslashes are first written in another way, so that each that is left
#: begins an escape; whole pairs are hidden while halves are looked for.
_STEPS = (
    r"replace(text, '\\', '\u005c')",
    r"regexp_replace(text, '\\x([0-7][0-9A-Fa-f])', '\\u00\1', 'g')",
    # Other bytes are letters of UTF-8; null where they are none.
    r"CASE WHEN contains(text, '\x') THEN TRY(url_decode(regexp_replace(replace(text, '%', '%25'), "
    r"'\\x([89A-Fa-f][0-9A-Fa-f])', '%\1', 'g'))) ELSE text END",
    r"regexp_replace(text, '\\(u[dD][89abAB][0-9A-Fa-f]{2})\\(u[dD][c-fC-F][0-9A-Fa-f]{2})', "
    rf"'{_BACKSLASH}\1{_BACKSLASH}\2', 'g')",
    rf"regexp_replace(text, '\\u[dD][89a-fA-F][0-9A-Fa-f]{{2}}', '{HALF_PAIR}', 'g')",
    rf"replace(text, '{_BACKSLASH}', '\')",
)


def repaired_or_null(text: str) -> str:
    """The SQL of a text if it is JSON, or else with such escapes as they are meant; null if it is none then."""
    meant = "text"
    for step in _STEPS:
        # A backslash in what is put in stands for itself.
        meant = re.sub(r"\btext\b", f"({meant})".replace("\\", r"\\"), step)
    meant = f"list_filter([{meant}], lambda text: json_valid(text))[1]"
    either = f"CASE WHEN json_valid(text) THEN text WHEN regexp_matches(text, {quoted(_ODD)}) THEN {meant} END"
    return f"list_transform([{text}], lambda text: {either})[1]"


def repaired(texts: pa.StringArray) -> pa.StringArray:
    """The texts with such escapes as they are meant, where it is no JSON otherwise; half a pair is ``HALF_PAIR``."""
    is_odd = pc.match_substring_regex(texts, _ODD).fill_null(False)
    if not pc.any(is_odd).as_py():
        return texts
    table = "SELECT text AS given, text FROM lines"
    for step in _STEPS:
        table = f"SELECT given, {step} AS text FROM ({table})"
    sql = f"SELECT CASE WHEN json_valid(given) THEN given ELSE text END AS text FROM ({table})"
    result = run_on_lines(sql, pa.table({"text": texts.filter(is_odd)}))
    return pc.replace_with_mask(texts, is_odd, as_array(result["text"]))


def has_schema_id(values: pa.BinaryArray) -> pa.BooleanArray:
    """Which records have these five bytes before them, whatever follows."""
    begins = pc.starts_with(values, b"\0")
    if not pc.any(begins).as_py():
        return begins
    return pc.and_(begins, pc.greater(pc.binary_length(values), _SCHEMA_ID_BYTES))


def without_schema_id(values: pa.BinaryArray) -> pa.BinaryArray:
    """Records of JSON without the five bytes before it."""
    begins = has_schema_id(values)
    if not pc.any(begins).as_py():
        return values
    framed = values.filter(begins)
    json = pc.binary_slice(framed, _SCHEMA_ID_BYTES, 2**30)
    return pc.replace_with_mask(values, begins, pc.if_else(pc.starts_with(json, b"{"), json, framed))


def without_prefix(texts: pa.StringArray) -> pa.StringArray:
    """JSON without what other programs have put before it: syslog, Docker, Kubernetes, fluentd …; all else as it is."""
    is_other = pc.invert(pc.starts_with(texts, "{")).fill_null(False)
    if not pc.any(is_other).as_py():
        return texts
    # What is before the first bracket nearly always: a pattern without a group takes a tenth of the time.
    is_prefix = f"regexp_full_match(before, {quoted(JSON_PREFIX)}) AND regexp_matches(json, '^[{{][ \t\r\n]*[\"}}]')"
    # Without a match the text is empty.
    by_group = f"coalesce(nullif(regexp_extract(text, {quoted(f'^{JSON_PREFIX}([{{].*)')}, 1, 's'), ''), text)"
    query = (
        f"SELECT CASE WHEN {is_prefix} THEN json WHEN json <> '' THEN {by_group} ELSE text END AS text "
        f"FROM (SELECT text, text[:place - 1] AS before, text[nullif(place, 0):] AS json "
        f"FROM (SELECT text, strpos(text, '{{') AS place FROM lines))"
    )
    result = run_on_lines(query, pa.table({"text": texts.filter(is_other)}))
    return pc.replace_with_mask(texts, is_other, as_array(result["text"]))

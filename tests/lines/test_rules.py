"""What a rule of a replay may be, and what it makes of lines."""

from __future__ import annotations

from collections import defaultdict
from contextlib import closing
from datetime import date

import pyarrow as pa
import pytest

from include.duckdb_sql import closed_connection
from include.errors import UsageError
from spark_jobs.lines.rules import RULE_FUNCTIONS, RuleError, repaired_texts, require_rule

NOT_ONE = "the rule is no SQL expression: not one value"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("", "the rule is no SQL expression: not one value"),
        ("raw +", "the rule is no SQL expression: syntax error"),
        ("raw), (source", "the rule is no SQL expression: not one value"),
        ("nonsense(raw)", "the rule is no SQL expression: Catalog Error: Scalar Function with name nonsense"),
        ("colour", 'the rule is no SQL expression: Binder Error: Referenced column "colour" not found'),
        ("$1", "the rule is no SQL expression"),
        ("length(raw)", "the rule gives BIGINT; expected one SQL expression"),
        ("NULL", "the rule gives"),
        ("raw || random()", "the rule uses random"),
        ("raw || CURRENT_DATE", "the rule uses current_date"),
        ("raw || localtimestamp", "the rule uses localtimestamp"),
        ("age(raw::TIMESTAMP)::VARCHAR", "the rule uses age"),
        ("max(raw)", "the rule uses max"),
        ("unnest([raw, raw])", "the rule uses unnest"),
        ("lag(raw) OVER ()", "the rule uses a window function"),
        ("(SELECT content FROM read_text('/etc/passwd'))", "the rule uses a subquery"),
        ("*", "the rule uses a star"),
        # More than one statement, or more than an expression.
        ("raw) AS repaired FROM lines; SELECT (first_value(raw) OVER ()", NOT_ONE),
        ("raw) AS repaired FROM lines; SELECT (raw", NOT_ONE),
        ("raw) FROM lines UNION ALL SELECT (raw", NOT_ONE),
        ("raw) AS repaired FROM lines WHERE (reason <> ''", "the rule is no SQL expression"),
        ("raw) AS repaired FROM lines ORDER BY (raw) --", "the rule is no SQL expression"),
        ("raw), lower(raw", NOT_ONE),
        ("raw) AS repaired FROM (SELECT 'x' AS raw), (SELECT 1", "the rule is no SQL expression"),
        ("raw) AS repaired FROM lines GROUP BY ALL HAVING (true", "the rule is no SQL expression"),
        ("raw; PREPARE p AS SELECT 1", "the rule is no SQL expression"),
        ("FROM lines", "the rule uses a subquery"),
        ("FROM lines SELECT raw", "the rule uses a subquery"),
        ("PIVOT lines ON raw", "the rule is no SQL expression"),
        ("raw -- ) AS repaired\n; DROP TABLE lines", "the rule is no SQL expression"),
        ("raw /* ", "the rule is no SQL expression"),
        # What is not of the line, or not always the same.
        ("ago(INTERVAL 1 DAY)::VARCHAR", "the rule uses ago"),
        ("pg_postmaster_start_time()::VARCHAR", "the rule uses pg_postmaster_start_time"),
        ("json_group_array(raw)::VARCHAR", "the rule uses json_group_array"),
        ("regexp_split_to_table(raw, ',')", "the rule uses regexp_split_to_table"),
        ("upper(lower(now()::VARCHAR))", "the rule uses now"),
        ("main.random()::VARCHAR", "the rule uses main.random"),
        ('"random"()::VARCHAR', "the rule uses random"),
        ("/* a */ RANDOM /* b */ ()::VARCHAR", "the rule uses random"),
        ("CASE WHEN raw = '' THEN uuid()::VARCHAR ELSE raw END", "the rule uses uuid"),
        ("getvariable('a')::VARCHAR", "the rule uses getvariable"),
        ("current_setting('TimeZone')", "the rule uses current_setting"),
        ("getenv('HOME')", "the rule is no SQL expression: Catalog Error: Scalar Function with name getenv"),
        ("version()", "the rule uses version"),
        ("raw IN (SELECT raw FROM lines)", "the rule uses a subquery"),
        ("raw = ANY(['a'])", "the rule uses a subquery"),
        ("sum(1) OVER ()", "the rule uses a window function"),
        ("list_transform([raw], lambda x: x)[1]", "the rule uses"),
        ("[x FOR x IN [raw]][1]", "the rule uses"),
        ("{'a': raw}.a", "the rule uses"),
        ("row(raw)::VARCHAR", "the rule uses row"),
        ("lines::VARCHAR", "the rule uses lines"),
        ("rowid::VARCHAR", "the rule is no SQL expression"),
        ("repaired", "the rule is no SQL expression"),
        ("COLUMNS('raw')", "the rule uses a star"),
        ("#1", "the rule uses positional_reference"),
        ("raw COLLATE NOCASE", "the rule uses collate"),
        ("raw::STRUCT(a INTEGER)::VARCHAR", "the rule uses the type struct"),
        ("raw::INTEGER[]::VARCHAR", "the rule uses the type list"),
        ("raw.upper()", "the rule uses raw.upper"),
        ('"a\nb"(raw)', "the rule is no SQL expression"),
        ("\uff52aw", "the rule is no SQL expression"),
        # What takes all memory.
        ("repeat(raw, 1000000000)", "the rule uses repeat"),
        ("lpad(raw, 1000000000, ' ')", "the rule uses lpad"),
        ("printf('%1000000000s', raw)", "the rule uses printf"),
        ("range(1000000000)::VARCHAR", "the rule uses range"),
        ("string_agg(raw, ',')", "the rule uses string_agg"),
        ("replace(replace(raw, 'a', repeat_), 'b', '')", "the rule is no SQL expression"),
        (f"replace(replace(raw, 'a', '{'a' * 50}'), 'a', '{'b' * 50}')", "the rule may give 2,601 times the text"),
        ("regexp_replace(raw, '.', raw)", "the rule may give 200,002 times the text"),
        ("replace(" * 9 + "raw" + ", 'a', 'aa')" * 9, "the rule may give 19,683 times the text"),
        ("to_json(" * 9 + "raw" + ")" * 9 + "::VARCHAR", "the rule may give"),
        ("(" * 2000 + "raw" + ")" * 2000, "the rule is no SQL expression"),
        ("lower(" * 1200 + "raw" + ")" * 1200, "the rule is no SQL expression"),
        ("raw || '" + "x" * 10_000 + "'", "the rule has 10,009 characters: expected at most 10,000"),
    ],
)
def test_what_is_no_rule_is_refused_in_a_line(rule: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        require_rule(rule)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def _lines(*raw: str) -> pa.Table:
    count = len(raw)
    return pa.table(
        {
            "raw": pa.array(raw), "source": ["web"] * count, "reason": ["not_json"] * count,
            "log_date": [date(2026, 3, 1)] * count, "log_hour": [5] * count, "file": ["a.json"] * count,
            "line": list(range(1, count + 1)),
        }
    )  # fmt: skip


def test_rule_gives_a_text_or_null_for_each_line_in_order() -> None:
    rule = "if(starts_with(raw, 'day='), substr(raw, 5) || reason || source, NULL) -- a comment"
    require_rule(rule)
    raw = [f"day={number}" if number % 3 else "else" for number in range(5000)]
    expected = [f"{number}not_jsonweb" if number % 3 else None for number in range(5000)]
    assert repaired_texts(rule, _lines(*raw)).to_pylist() == expected


@pytest.mark.parametrize(
    ("rule", "raw", "repaired"),
    [
        ("raw -> '$.a' ->> '$.b'", '{"a": {"b": "c"}}', "c"),
        ("json_merge_patch(raw, json_object('url', raw ->> '$.link'))::VARCHAR", '{"link":"x"}', None),
        ("if(raw LIKE 'day=%', raw[5:], NULL)", "day=x", "x"),
        ("string_split(raw, '\t')[2] || split_part(raw, '\t', 1)", "a\tb", "ba"),
        ("regexp_replace(raw, '(\\d+)-(\\d+)', '\\2-\\1', 'g')", "1-2 3-4", "2-1 4-3"),
        ("TRY(strftime(raw::TIMESTAMP + INTERVAL 1 HOUR, '%d %H:%M'))", "2026-03-01 05:00", "01 06:00"),
        ("replace(replace(raw, chr(9), ' '), '\"\"', '\"')", 'a\t""b', 'a "b'),
        ('"raw" || lines.source /* and */ || RAW', "a", "aweba"),
        ("CASE WHEN coalesce(raw, '') IN ('a', 'b') AND length(raw) BETWEEN 1 AND 2 THEN upper(raw) END", "b", "B"),
        ("timezone('Europe/Vienna', raw::TIMESTAMP)::VARCHAR", "2026-03-01 05:00", "2026-03-01 04:00:00+00"),
    ],
)  # fmt: skip
def test_usual_repairs_are_rules(rule: str, raw: str, repaired: str | None) -> None:
    require_rule(rule)
    (text,) = repaired_texts(rule, _lines(raw)).to_pylist()
    if repaired is not None:
        assert text == repaired
    # Of each line it says the same, whichever lines are beside it.
    again = repaired_texts(rule, _lines(raw, raw, raw)).to_pylist()
    assert again == [text] * 3


def test_each_function_of_a_rule_is_of_one_line_and_always_the_same() -> None:
    with closing(closed_connection()) as connection:
        kinds = "SELECT lower(function_name), function_type, stability FROM duckdb_functions()"
        known: dict[str, set[tuple[str, str | None]]] = defaultdict(set)
        for name, kind, stability in connection.execute(kinds).fetchall():
            known[name].add((kind, stability))
    # Macros are named: each was looked at. The last two are no functions to DuckDB, but operators.
    others = {name: known.get(name, set()) for name in RULE_FUNCTIONS if known.get(name) != {("scalar", "CONSISTENT")}}
    assert set(others) == {"if", "nullif", "split_part", "coalesce", "ifnull"}
    assert {kind for kinds in others.values() for kind, _ in kinds} <= {"macro"}


def test_rule_that_throws_names_the_first_such_line_without_its_text() -> None:
    rule = "strptime(raw, '%Y')::VARCHAR"
    require_rule(rule)
    with pytest.raises(RuleError) as failed:
        repaired_texts(rule, _lines("2026", "2027", "2028", "of 203.0.113.77", "again"))
    assert str(failed.value) == (
        "the rule of the replay fails at web 2026-03-01T05 a.json:4 (not_json): Invalid Input Error"
    )

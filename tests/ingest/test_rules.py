"""What a rule of a replay may be, and what it makes of lines."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

from include.errors import UsageError
from spark_jobs.ingest.rules import RuleError, repaired_texts, require_rule


@pytest.mark.parametrize(
    ("rule", "said"),
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
    ],
)
def test_what_is_no_rule_is_refused_in_a_line(rule: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        require_rule(rule)
    assert str(refused.value).startswith(said)
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


def test_rule_that_throws_names_the_first_such_line_without_its_text() -> None:
    rule = "strptime(raw, '%Y')::VARCHAR"
    require_rule(rule)
    with pytest.raises(RuleError) as failed:
        repaired_texts(rule, _lines("2026", "2027", "2028", "of 203.0.113.77", "again"))
    assert str(failed.value) == (
        "the rule of the replay fails at web 2026-03-01T05 a.json:4 (not_json): Invalid Input Error"
    )

"""Lines of every format and of any bytes: each becomes a click or a reason for quarantine, never nothing."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import date
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.hours import Hour
from include.sources import Source
from include.tables import QUARANTINE_REASONS
from spark_jobs.lines.parse_lines import parse_lines
from tests.lines.lines import TRACKING, lines_table
from tests.lines.parsing import ACCESS, COMMON, ISO, REST, WEB, line, log_line, parse


def test_no_lines_are_no_rows() -> None:
    for source in (WEB, ACCESS, COMMON):
        assert parse([], source) == []


def test_place_of_each_line_stays() -> None:
    table = lines_table([line() + b"\r\n", b"x\n"], first_line=41, hour=Hour.parse("2026-02-28T23"), file="b\n.log")
    rows = parse_lines(table, WEB, ()).to_pylist()
    assert [(row["log_date"], row["log_hour"], row["file"]) for row in rows] == [(date(2026, 2, 28), 23, "b\n.log")] * 2
    assert [(row["line"], row["bytes"]) for row in rows] == [(41, len(line())), (42, 1)]


def test_only_some_lines_are_looked_at_for_their_fields() -> None:
    raw = [line() if n % 2 else b"[]" for n in range(1, 402)]
    assert [row["line"] for row in parse(raw, first_line=1) if row["sampled"]] == [*range(1, 101, 2)]
    rows = parse([line(n=n) for n in range(1, 402)], first_line=1)
    sampled = {row["line"]: row["sampled"] for row in rows if row["sampled"]}
    assert list(sampled) == [*range(1, 101), 200, 300, 400]
    assert sampled[300] == line(n=300).decode()
    assert parse([b"{}"], first_line=1)[0]["sampled"] == "{}", "quarantined, and an object"
    assert all(row["sampled"] is None for row in parse([log_line(rest=REST)], ACCESS, first_line=1))


def _any_line(rng: random.Random) -> bytes:
    match rng.randrange(5):
        case 0:
            return rng.randbytes(rng.randrange(80))
        case 1 | 2:
            raw = bytearray(rng.choice([line(event_id=str(rng.random())), log_line(rest=REST)]))
            raw[rng.randrange(len(raw))] = rng.choice(b'"{}\\:,[]- \x00\x01\xff')
            return bytes(raw)
        case 3:
            return line()[: rng.randrange(120)]
        case _:
            return line(ts=rng.choice([ISO, 17, True, [], {}, "1e9"]), url=rng.choice(["http://a", 1, [], {}, ""]))


@pytest.mark.parametrize("source", [WEB, ACCESS, COMMON], ids=lambda source: source.format)
def test_no_line_vanishes_whatever_it_holds(source: Source) -> None:
    rng = random.Random(5)
    raw = [_any_line(rng) for _ in range(5000)]
    rows = parse(raw, source)
    reasons = Counter(row["reason"] for row in rows)
    assert reasons[None] > 100
    assert reasons.keys() - {None} <= QUARANTINE_REASONS.keys()
    for row in rows:
        if row["reason"] is None:
            assert row["clicked_at"] is not None
            assert row["url"].startswith(("http://", "https://"))
    # Neither the lines' order nor how they are split into tables changes what each is.
    table = lines_table(raw)
    order = rng.sample(range(len(raw)), len(raw))
    shuffled = parse_lines(table.take(order), source, TRACKING).sort_by("row_id")
    assert shuffled.to_pylist() == rows
    cuts = [0, *sorted(rng.sample(range(len(raw)), 20)), len(raw)]
    pieces = [table.slice(start, end - start) for start, end in pairwise(cuts)]
    assert pa.concat_tables(parse_lines(piece, source, TRACKING) for piece in pieces).to_pylist() == rows
    assert parse_lines(pa.concat_tables(pieces), source, TRACKING).to_pylist() == rows, "a table of several chunks"


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.binary(max_size=60) | st.text().map(str.encode), max_size=20), st.sampled_from([WEB, ACCESS, COMMON])
)
def test_any_bytes_are_a_line(raw: list[bytes], source: Source) -> None:
    for row in parse(raw, source):
        assert row["reason"] is None or row["reason"] in QUARANTINE_REASONS
        assert (row["raw"] is None) == (row["reason"] is None)


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from([ISO, "http://a.test/"]),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=4), inside, max_size=3),
    max_leaves=6,
)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(["event_id", "ts", "url", "geo", "status"], _values))))
def test_values_of_any_type_are_a_click_or_a_reason(records: list[dict[str, Any]]) -> None:
    for record, row in zip(records, parse([json.dumps(record).encode() for record in records]), strict=True):
        assert row["reason"] is None or row["reason"] in QUARANTINE_REASONS
        if isinstance(event_id := record.get("event_id"), str) and row["reason"] is None:
            assert row["event_id"] == event_id

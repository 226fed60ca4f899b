from __future__ import annotations

import json

from include.hours import Hour
from include.source_fields import LineFields
from include.sources import Source
from spark_jobs.lines.json_fields import FIRST_SAMPLED_LINES, SAMPLED_EVERY
from spark_jobs.lines.sampled_lines import SampledLines, fields_of
from tests.lines.lines import arrivals, lines_table

WEB = Source(name="web", format="json", fields=LineFields(time="ts", url="url"))


def _sampled(lines: dict[int, bytes], source: Source = WEB) -> dict[int, str]:
    """Those of these lines, by their numbers, that are sampled."""
    rows = arrivals(source, [lines_table([*lines.values()], numbers=[*lines])]).to_pylist()
    return {row["line"]: row["sampled"] for row in rows if row["sampled"] is not None}


def test_first_lines_and_every_hundredth_are_sampled() -> None:
    sampled = _sampled({line: b'{"line": %d}' % line for line in range(1, 1001)})
    expected = [n for n in range(1, 1001) if n <= FIRST_SAMPLED_LINES or n % SAMPLED_EVERY == 0]
    assert {line: json.loads(text)["line"] for line, text in sampled.items()} == {n: n for n in expected}


def test_only_objects_are_sampled_whatever_else_is_wrong_with_them() -> None:
    lines = {
        1: b"nonsense", 2: b"", 3: b"[1]", 4: b'{"url": "no time"}', 5: b'{"two": 1}{"objects": 2}',
        6: b' {"space": 1} \r', 7: b'{"not UTF-8": "\xff"}',
    }  # fmt: skip
    assert _sampled(lines).keys() == {4, 6}
    access = Source(name="access", format="common", base_url="http://a.test")
    line = b'192.0.2.1 - - [01/Mar/2026:05:00:00 +0000] "GET / HTTP/1.1" 200 5'
    assert _sampled({1: line}, access) == {}


def test_fields_are_told_by_place_less_those_that_are_not_watched_and_addresses() -> None:
    first, second = Hour.parse("2026-03-01T05"), Hour.parse("2026-03-01T06")
    fields = LineFields(time="ts", url="url", client_address="ip")
    source = Source(name="web", format="json", fields=fields, unwatched_fields=("geo",))
    lines = [b'{"ip": "192.0.2.%d", "geo": {"c": "DE"}, "n": %d}' % (n, n) for n in range(1, 251)]
    sampled = SampledLines(source, ("log_date", "log_hour"))
    for table in (lines_table(lines, 1, hour=first), lines_table(lines[:3], 300, hour=first)):
        sampled.add(arrivals(source, [table]))
    sampled.add(arrivals(source, [lines_table([b'{"n": 2.5}', b"no object"], 1, hour=second)]))
    fields_by_hour = {
        Hour.of(row["log_date"], row["log_hour"]): (row["sampled_lines"], row["sampled_fields"])
        for row in sampled.rows()
    }
    assert fields_by_hour == {
        first: (
            102,
            [
                {"path": "ip", "type": "string", "lines": 102, "example": None},
                {"path": "n", "type": "integer", "lines": 102, "example": "100"},
            ],
        ),
        second: (1, [{"path": "n", "type": "number", "lines": 1, "example": "2.5"}]),
    }
    assert fields_of(sampled.rows()[1]).lines == 1

"""Times: what most lines have is read in a shorter way, to the same moments."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from include.duckdb_sql import run_sql
from include.time_formats import TimeFormat
from spark_jobs.lines.columns import as_array
from spark_jobs.lines.times import clicked_at, read_times, usual_moment

_ISO = ["2026-03-01", "2026-02-29", "0000-01-01", "9999-12-31"], ["T", " ", "t", "  "], ["12:30", "23:59", "24:00"], [
    "", ":00", ":59", ":60", ":00.5", ":00.123456", ":59.9999999", ":00,25", ":00."
], ["", "Z", "z", "+01:00", " +01:00", "-0730", "+01", "+24:00", " UTC", "[UTC]"]  # fmt: skip
_NUMBERS = ["", "-", "+", " "], ["1772368200", "0772368200", "9999999999", "177236820", "1772368200123", "1" * 25], [
    "", ".", ".5", ".123456", ".9999999", ".0000004", "." + "7" * 40
], ["", "e0", "E-1", " ", "x"]  # fmt: skip
_ACCESS_LOG = ["01/Mar/2026:", "31/Feb/2026:", "00/Mar/2026:", "[01/Mar/2026:"], ["12:30:00", "12:30:60", "24:00:00"], [
    "", " +0000", " -0730", " +2500", " +0000]", " GMT"
]  # fmt: skip


@pytest.mark.parametrize(
    "formats",
    [
        ("iso8601",), ("epoch_seconds",), ("access_log",), ("rfc1123",), ("epoch_milliseconds",),
        ("epoch_seconds", "epoch_milliseconds", "epoch_nanoseconds", "iso8601", "access_log"),
        ("iso8601", "epoch_seconds"), ("access_log", "iso8601"),
    ],
)  # fmt: skip
def test_usual_times_are_what_they_are_among_all(formats: tuple[TimeFormat, ...]) -> None:
    rng = random.Random(str(formats))
    kinds = rng.choices([_ISO, _NUMBERS, _ACCESS_LOG], k=5000)
    texts: list[str | None] = ["".join(map(rng.choice, kind)) for kind in kinds]
    times = pa.array([*texts, None, "", "-", "1 Mar 2026 12:30:00 GMT"])

    def moments(expression: str) -> pa.Array:
        return as_array(run_sql(f"SELECT {expression} AS moment FROM lines", lines=pa.table({"time": times}))["moment"])

    whole, usual = moments(clicked_at("time", formats)), moments(usual_moment("time", formats))
    assert 0 < usual.null_count < len(times)
    assert read_times(times, usual, formats).equals(whole)

"""Random logs in delimited formats and JSON: each line is the click that its writer meant, or has his reason."""

from __future__ import annotations

import random

import pytest

from include.sources import Source
from spark_jobs.lines.headers import with_headers
from spark_jobs.lines.parse_lines import click_times, parse_lines
from tests.lines.lines import TRACKING, lines_table
from tests.lines.oracle import moment_micros
from tests.lines.random_delimited_logs import RandomCsv, RandomLog, RandomLogfmt, Truth
from tests.lines.random_json_logs import RandomJson
from tests.lines.random_server_logs import RandomAws, RandomCloudFront, RandomIis
from tests.support.fault_rounds import SEED

pytestmark = pytest.mark.faults

#: How many logs of each format, each with settings of its own, and lines of each: some 100,000 in make test-all.
DRAWS = [(5, 100), pytest.param(23, 500, marks=pytest.mark.slow)]
WRITERS = {
    "csv": RandomCsv, "tsv": RandomCsv, "logfmt": RandomLogfmt, "json": RandomJson, "iis": RandomIis,
    "cloudfront": RandomCloudFront, "alb": RandomAws, "elb": RandomAws, "s3": RandomAws,
}  # fmt: skip


def _same(log: RandomLog, count: int, seed: str) -> set[str | None]:
    """Hold the parser to a log's truth; the reasons that came."""
    source = Source.model_validate(log.settings)
    written = [(f"{text}{log.end}".encode(), truth) for text, truth in log.first()]
    written += [log.line() for _ in range(count)]
    (table,) = with_headers([lines_table([line for line, _ in written], 1)], source)
    times = click_times(table, source).to_pylist()
    for (line, truth), row, time in zip(written, parse_lines(table, source, TRACKING).to_pylist(), times, strict=True):
        outcome = Truth(
            row["reason"], row["clicked_at"], row["url"], row["client_address"], row["status"], row["user_agent"]
        )
        assert outcome == truth, (seed, log.settings, line)
        assert truth.clicked_at is None or time == moment_micros(truth.clicked_at)
    return {truth.reason for _, truth in written}


@pytest.mark.parametrize(("logs", "lines"), DRAWS)
@pytest.mark.parametrize("format_", WRITERS)
def test_lines_of_random_logs(format_: str, logs: int, lines: int) -> None:
    print(f"CLICKMILL_FAULT_SEED={SEED}")
    reasons = set()
    for number in range(logs):
        own = f"{SEED} {format_} {number}"
        reasons |= _same(WRITERS[format_](random.Random(own), format_), lines, own)
    assert {None, "blank", "not_utf8", "line_too_long", "bad_time", "missing_url"} < reasons

"""Whatever the lines are, each is accounted for once; their order, files and partitions change no count."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from include.tables import QUARANTINE_REASONS
from tests.lines.lines import arrivals_frame, lines_table
from tests.lines.parsing import WEB

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def _click(number: int) -> bytes:
    """The same id is always the same click, as when it is sent twice."""
    url = ["http://a.test/", "http://A.test?utm_source=x", "http://b.test/?q=1", "http://b.test/#top"][number % 4]
    record = {"event_id": f"e{number}", "ts": f"2026-03-01T12:{number % 60:02d}:00Z", "url": url}
    return json.dumps(record | {"geo": {"country": [None, "de", "FR", "??"][number % 4]}}).encode()


def _broken(cut: int, number: int) -> bytes:
    return _click(number)[:cut]


def _as_json(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode()


values = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("2026-03-01T12:00:00Z")
lines = st.lists(
    st.one_of(
        st.builds(_click, st.integers(0, 30)),
        st.builds(_broken, st.integers(0, 60), st.integers(0, 30)),
        st.dictionaries(st.sampled_from(["event_id", "ts", "url", "geo"]), values).map(
            lambda r: json.dumps(r).encode()
        ),
        st.binary(max_size=40).map(lambda raw: raw.replace(b"\n", b" ")),
    ),
    min_size=1,
    max_size=120,
)


def outcomes(spark: SparkSession, raw: list[bytes], files: int, partitions: int) -> tuple[Counter[Any], Counter[Any]]:
    """Lines by their outcome, and accepted clicks by URL and country."""
    from pyspark.sql.pandas.types import from_arrow_schema

    from spark_jobs.ids.duplicates import CANDIDATES, DECIDED, decide_duplicates, log_hour_number
    from spark_jobs.ingest.decided_clicks import decided_lines
    from spark_jobs.ingest.outcomes import count_outcomes

    tables = [
        lines_table(raw[file::files], file=str(file), numbers=[file << 33 | n for n in range(len(raw[file::files]))])
        for file in range(files)
    ]
    parsed = arrivals_frame(spark, WEB, tables).repartition(partitions)
    arrivals = parsed.where("reason IS NULL").select(
        "event_id", log_hour_number().alias("hour_number"), "file", "line", "row_id"
    )
    candidates = arrivals.selectExpr("*", "INT(NULL) AS first_hour").toArrow().cast(CANDIDATES)
    decided = spark.createDataFrame(
        decide_duplicates(candidates, ingested=range(1_000_000), lateness_hours=6).to_pylist(),
        from_arrow_schema(DECIDED),
    )
    counted: Counter[Any] = Counter()
    for row in count_outcomes(decided_lines(parsed, decided)).collect():
        outcome = row["reason"] or ("duplicate" if row["first_hour"] is not None else "accepted")
        counted[outcome] += row["lines"]
    accepted = decided_lines(parsed, decided).where("reason IS NULL AND first_hour IS NULL")
    by_key = accepted.groupBy("url", "country_code").count().collect()
    return counted, Counter({(row["url"], row["country_code"]): row["count"] for row in by_key})


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(raw=lines, order=st.randoms(use_true_random=False))
def test_accounting_adds_up_and_order_changes_nothing(spark: SparkSession, raw: list[bytes], order: Any) -> None:
    counted, by_key = outcomes(spark, raw, files=1, partitions=1)
    assert sum(counted.values()) == len(raw)
    assert counted.keys() <= QUARANTINE_REASONS.keys() | {"accepted", "duplicate"}
    assert sum(by_key.values()) == counted["accepted"]
    shuffled = order.sample(raw, len(raw))
    assert outcomes(spark, shuffled, files=3, partitions=4) == (counted, by_key)

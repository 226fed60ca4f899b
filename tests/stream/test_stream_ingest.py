"""A topic streamed into the lake by a real broker and a real Spark, against the batch and the sample's truth."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from include.hours import Hour
from include.tables import CLICKS, MAX_RAW_CHARACTERS, QUARANTINED_CLICKS, STREAM_BATCHES
from samples.sample_logs import make_sample
from samples.sample_spec import SampleSpec
from tests.stream.kafka_broker import Record
from tests.stream.landed_records import landed_records
from tests.stream.streamed_home import PLACE, multiset
from tests.stream.streamed_lake import StreamedLake
from tests.support.temporary_lake import TemporaryLake, click, make_settings
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPEC = SampleSpec(start=Hour.parse("2026-03-01T08"), hours=4, clicks_per_hour=2000, seed=23)
HOUR = Hour.parse("2026-03-01T08")
MILLISECONDS = int(HOUR.start.timestamp() * 1000)


@pytest.mark.path
def test_the_stream_writes_the_clicks_that_the_batch_writes(
    tmp_path: Path, spark: SparkSession, streamed: StreamedLake
) -> None:
    batch = TemporaryLake(spark, make_settings(tmp_path / "batch"))
    truth = make_sample(SPEC, batch.settings.landing)
    batch.run("ingest", str(SPEC.start), str(SPEC.start.plus(SPEC.hours)))
    streamed.broker.produce(
        streamed.topic, landed_records(batch.settings.landing, "web", list(SPEC.log_hours), partitions=3)
    )
    streamed.configure(max_rows_per_batch=1700)

    streamed.read_all()

    rows = streamed.rows(CLICKS)
    assert len(rows) == sum(of.accepted for of in truth.log_hours.values())
    assert multiset(rows, PLACE) == multiset(batch.rows(CLICKS), PLACE)
    assert multiset(streamed.rows(QUARANTINED_CLICKS), PLACE) == multiset(batch.rows(QUARANTINED_CLICKS), PLACE)
    accounts = streamed.rows(STREAM_BATCHES)
    assert len({row["batch_id"] for row in accounts}) > 3
    for log_hour, of in truth.log_hours.items():
        hour = Hour.parse(log_hour)
        own = [row for row in accounts if Hour.of(row["log_date"], row["log_hour"]) == hour]
        quarantined: Counter[str] = Counter()
        for row in own:
            quarantined.update(dict(row["quarantined_by_reason"]))
        assert (sum(row["lines"] for row in own), sum(row["accepted"] for row in own)) == (of.lines, of.accepted)
        assert quarantined == of.quarantined
        assert sum(row["late"] for row in own) == of.late


def test_what_is_no_click_is_quarantined_with_its_place(streamed: StreamedLake) -> None:
    values = [
        b"no click",
        None,
        b"",
        b'{"event_id": "' + b"x" * 20_000_000 + b'"}',
        b"\xff\xfe",
        click("good", "2026-03-01T08:10:00Z"),
    ]
    sources = streamed.settings.sources_file
    short = "scheduled = true\nmax_line_bytes = 1000"
    sources.write_text(sources.read_text(encoding="utf-8").replace("scheduled = true", short, 1), encoding="utf-8")
    streamed.broker.produce(
        streamed.topic, [Record(1, MILLISECONDS + place, value) for place, value in enumerate(values)]
    )
    streamed.read_all()
    rows = {row["line"]: row for row in streamed.rows(QUARANTINED_CLICKS)}
    reasons = {line: (row["file"], row["reason"]) for line, row in rows.items()}
    file = f"{streamed.topic}/1"
    assert reasons == {
        0: (file, "not_json"),
        1: (file, "blank"),
        2: (file, "blank"),
        3: (file, "line_too_long"),
        4: (file, "not_utf8"),
    }
    assert [row["event_id"] for row in streamed.rows(CLICKS)] == ["good"]
    too_long = values[3] or b""
    assert (rows[3]["bytes"], rows[3]["raw"]) == (len(too_long), too_long[:MAX_RAW_CHARACTERS].decode())


def test_the_first_arrival_wins_and_clocks_do_not_matter(streamed: StreamedLake) -> None:
    def line(event_id: str, url: str) -> bytes:
        return click(event_id, "2026-03-01T08:10:00Z", url=f"http://shop.test/{url}")

    year = 365 * 86_400_000
    records = [
        Record(0, MILLISECONDS + 5000, line("a", "second")),
        Record(1, MILLISECONDS + 4000, line("a", "first")),
        Record(2, MILLISECONDS + 6000, line("b", "b")),
        # Its clock is years ahead: it arrived now, and the click is too old for that; nothing else changes.
        Record(2, MILLISECONDS + 20 * year, line("c", "c")),
    ]
    streamed.broker.produce(streamed.topic, records)
    streamed.read_all()
    streamed.broker.produce(
        streamed.topic,
        [
            Record(0, MILLISECONDS + 7000, line("b", "again")),
            Record(0, MILLISECONDS + 8000, line("d", "d")),
            # And one whose clock is far behind.
            Record(1, MILLISECONDS - 3 * 86_400_000, line("e", "e")),
        ],
    )
    streamed.read_all()
    urls = sorted(row["url"].rpartition("/")[2] for row in streamed.rows(CLICKS))
    assert urls == ["b", "d", "first"]
    reasons = [row["reason"] for row in streamed.rows(QUARANTINED_CLICKS)]
    assert set(reasons) == {"time_out_of_range"}
    lines = sum(row["lines"] for row in streamed.rows(STREAM_BATCHES))
    accepted = sum(row["accepted"] for row in streamed.rows(STREAM_BATCHES))
    assert (lines, accepted, len(reasons)) == (7, 3, 2)


def test_partitions_that_are_added_while_it_runs_are_read_too(streamed: StreamedLake) -> None:
    from spark_jobs.stream import query as stream_query

    streamed.broker.produce(streamed.topic, [Record(0, MILLISECONDS, click("a", "2026-03-01T08:00:00Z"))])
    query = stream_query.start(streamed.spark, streamed.settings, streamed.source)
    try:
        query.processAllAvailable()
        streamed.broker.add_partitions(streamed.topic, 5)
        added = [Record(4, MILLISECONDS, click("b", "2026-03-01T08:00:00Z"))]
        streamed.broker.produce(streamed.topic, [*added, Record(1, MILLISECONDS, click("c", "2026-03-01T08:00:00Z"))])
        # A batch's accounting is written after its clicks: stopping between the two is another test's.
        wait_until(lambda: sum(row["lines"] for row in streamed.rows(STREAM_BATCHES)) >= 3, "all are accounted", 120)
    finally:
        query.stop()
    assert sorted(row["event_id"] for row in streamed.rows(CLICKS)) == ["a", "b", "c"]
    assert {row["partition"] for row in streamed.rows(STREAM_BATCHES)} == {0, 1, 4}

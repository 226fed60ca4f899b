"""A visitor erased from what came by a topic: as if its records had never been produced, and the stream goes on."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from include.errors import ClickmillError
from include.hours import Hour
from include.tables import CLICKS, CLICKS_BY_COUNTRY_LIVE, CLICKS_BY_URL_LIVE, QUARANTINED_CLICKS, STREAM_BATCHES
from samples.sample_logs import make_sample
from samples.sample_spec import SampleSpec
from spark_jobs.erasure.requests import Requests
from spark_jobs.stream.checkpoint import StreamCheckpoint
from tests.erasure.erased_lake import batch_sums, erase, files_with, of_streams
from tests.stream.kafka_broker import Record
from tests.stream.landed_records import landed_records
from tests.stream.live_truth import live_counts, true_counts
from tests.stream.streamed_lake import StreamedLake
from tests.support.temporary_lake import assert_same_tables, make_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.stream.kafka_broker import KafkaBroker

pytestmark = pytest.mark.slow

SPEC = SampleSpec(start=Hour.parse("2026-03-01T08"), hours=2, clicks_per_hour=600, seed=37)
FIRST, END = SPEC.start, SPEC.start.plus(SPEC.hours)


def streamed_lake(spark: SparkSession, home: Path, broker: KafkaBroker) -> StreamedLake:
    lake = StreamedLake(spark, make_settings(home), broker, f"clicks-{uuid4()}")
    lake.configure(max_rows_per_batch=500)
    # The sample's late clicks come up to 5 hours late.
    pipeline = lake.settings.pipeline_file
    pipeline.write_text(pipeline.read_text() + "\n[live]\nwatermark_minutes = 400\n", encoding="utf-8")
    broker.create_topic(lake.topic, 3)
    return lake


def visitor_of(records: list[Record]) -> tuple[str, set[str]]:
    """The one with most lines of those whose lines come once; and the event ids of these lines."""
    events: dict[str, list[str]] = {}
    for record in records:
        try:
            line = json.loads(record.value or b"")
            events.setdefault(line["visitor_id"], []).append(line["event_id"])
        except (ValueError, KeyError, TypeError):
            continue
    times = Counter(event for of_visitor in events.values() for event in of_visitor)
    once = {visitor: of for visitor, of in events.items() if visitor and all(times[event] == 1 for event in of)}
    visitor = max(once, key=lambda candidate: len(once[candidate]))
    return visitor, {event for event in once[visitor] if event}


def forget_last_account(lake: StreamedLake) -> None:
    """As if the stream had been killed before its last micro-batch was accounted for."""
    log = lake.settings.lake / STREAM_BATCHES.name / "_delta_log"
    max(log.glob("*.json")).unlink()
    commits = StreamCheckpoint.of(lake.settings, "web").folder / "commits"
    last = max(int(file.name) for file in commits.glob("[0-9]*"))
    for name in (f"{last}", f".{last}.crc"):
        (commits / name).unlink(missing_ok=True)


def computed(lake: StreamedLake) -> dict[str, list[dict[str, Any]]]:
    """Tables without what depends on the order of micro-batches; what is published is compared where files are read."""
    tables = {name: rows for name, rows in of_streams(lake).items() if not name.startswith("published")}
    for row in (row for rows in tables.values() for row in rows):
        row.pop("visitor_sketch", None)
    return {name: sorted(rows, key=repr) for name, rows in tables.items()}


def test_records_of_an_erased_visitor_are_as_never_produced(
    tmp_path: Path, spark: SparkSession, broker: KafkaBroker
) -> None:
    make_sample(SPEC, tmp_path / "landing")
    records = list(landed_records(tmp_path / "landing", "web", list(SPEC.log_hours), partitions=3))
    earlier, later = records[: len(records) * 3 // 4], records[len(records) * 3 // 4 :]
    visitor, events = visitor_of(earlier)
    earlier.insert(40, Record(1, earlier[40].timestamp, f"no JSON of {visitor}".encode()))
    others = [record for record in earlier if visitor.encode() not in (record.value or b"")]
    later = [record for record in later if visitor.encode() not in (record.value or b"")]
    # Copies of what has been read: the stream is to know their ids still.
    later += [record._replace(timestamp=later[-1].timestamp) for record in others[::20]]

    lake = streamed_lake(spark, tmp_path / "erased", broker)
    broker.produce(lake.topic, earlier)
    lake.read_all(live=True)
    lake.run_jobs(str(FIRST), str(FIRST.plus(1)), "ingest", "aggregate")
    assert any(visitor in row["raw"] for row in lake.rows(QUARANTINED_CLICKS))
    assert len(events & {row["event_id"] for row in lake.rows(CLICKS)}) > 3

    forget_last_account(lake)
    with pytest.raises(
        ClickmillError, match=r"nothing is erased: the last micro-batch of web has not .* --available-now"
    ):
        erase(lake, Requests.of([visitor]))
    lake.read_all(live=True)
    words = (visitor, *sorted(events)[:3])
    assert all(files_with(lake.settings.home, word) for word in words)
    erase(lake, Requests.of([visitor]))
    # Of the event ids the checkpoint has hashes.
    assert files_with(lake.settings.home, *words) == []

    broker.produce(lake.topic, later)
    lake.read_all(live=True)
    lake.run_jobs(str(FIRST), str(END), "ingest", "aggregate")
    fresh = streamed_lake(spark, tmp_path / "fresh", broker)
    broker.produce(fresh.topic, others + later)
    fresh.read_all()
    fresh.run_jobs(str(FIRST), str(END), "ingest", "aggregate")
    assert_same_tables(computed(lake), computed(fresh))
    assert batch_sums(lake) == batch_sums(fresh)
    for table, key in ((CLICKS_BY_URL_LIVE, "url"), (CLICKS_BY_COUNTRY_LIVE, "country_code")):
        assert live_counts(lake, table, key) == true_counts(lake, key)
    assert files_with(lake.settings.home, *words) == []

"""The log hours of a streamed source: settled when they are over, then counted, checked and published as any."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from include.json_fields import FIRST_SAMPLED_LINES, SAMPLED_EVERY
from include.log_hours import Hour
from include.stream_position import has_passed, is_settleable
from include.tables import AGGREGATES, CLICKS, INGEST_ACCOUNTING, QUARANTINED_CLICKS, STREAM_BATCHES, Table
from samples.sample_logs import SampleSpec, make_sample
from tests.jobs.temporary_lake import TemporaryLake, click, make_settings
from tests.stream.kafka_broker import Record
from tests.stream.landed_records import landed_records
from tests.stream.streamed_home import PLACE, multiset
from tests.stream.streamed_lake import StreamedLake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPEC = SampleSpec(start=Hour.parse("2026-03-01T08"), hours=2, clicks_per_hour=1500, seed=31)
HOUR = Hour.parse("2026-03-01T08")
#: What the batch and the stream measure differently: files, fields of sampled lines, order within a file.
OF_FILES = {"files", "bytes", "sampled_lines", "sampled_fields", "out_of_order", "duplicates_of"}


def at(hour: Hour, minutes: float) -> int:
    return int((hour.start + timedelta(minutes=minutes)).timestamp() * 1000)


def counts(lake: TemporaryLake, table: Table) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "visitor_sketch"} for row in lake.rows(table)]


def test_streamed_hours_are_published_as_landed_ones_are(
    tmp_path: Path, spark: SparkSession, streamed: StreamedLake
) -> None:
    batch = TemporaryLake(spark, make_settings(tmp_path / "batch"))
    make_sample(SPEC, batch.settings.landing)
    records = list(landed_records(batch.settings.landing, "web", list(SPEC.log_hours), partitions=3))
    streamed.configure(max_rows_per_batch=2000)
    end = SPEC.start.plus(SPEC.hours)
    # All hours but the last are settled while that one is still read; what is open is not counted.
    streamed.broker.produce(streamed.topic, records[: -len(records) // 8])
    streamed.read_all()
    for hour in list(SPEC.log_hours)[:-1]:
        batch.run_all(str(hour))
        streamed.run_all(str(hour))
    assert multiset(streamed.rows(CLICKS), PLACE) != multiset(batch.rows(CLICKS), PLACE)
    for computed, published in AGGREGATES.items():
        assert counts(streamed, computed) == counts(batch, computed), computed.name
        assert counts(streamed, published) == counts(batch, published), published.name

    streamed.broker.produce(streamed.topic, records[-len(records) // 8 :])
    assert not has_passed(streamed.settings, streamed.source, end.plus(-1), end.end)
    streamed.read_all()
    assert has_passed(streamed.settings, streamed.source, end.plus(-1), end.end)
    batch.run_all(str(end.plus(-1)))
    streamed.run_all(str(end.plus(-1)))

    assert multiset(streamed.rows(CLICKS), PLACE) == multiset(batch.rows(CLICKS), PLACE)
    for computed, published in AGGREGATES.items():
        assert counts(streamed, computed) == counts(batch, computed), computed.name
        assert counts(streamed, published) == counts(batch, published), published.name
    accounts = [
        [{name: value for name, value in row.items() if name not in OF_FILES} for row in lake.rows(INGEST_ACCOUNTING)]
        for lake in (streamed, batch)
    ]
    assert accounts[0] == accounts[1]
    for account in streamed.rows(INGEST_ACCOUNTING):
        lines = sampled(streamed, Hour.of(account["log_date"], account["log_hour"]), records)
        assert account["sampled_lines"] == len(lines) > 0
        found = {(row["path"], row["type"]): row["lines"] for row in account["sampled_fields"]}
        countries = [line["geo"]["country"] for line in lines if line.get("geo")]
        assert found["event_id", "string"] == sum(isinstance(line.get("event_id"), str) for line in lines)
        assert found["geo.country", "string"] == sum(isinstance(country, str) for country in countries)


def sampled(lake: StreamedLake, hour: Hour, records: list[Record]) -> list[dict[str, Any]]:
    """Of the hour's lines that are no duplicates those whose fields are looked at, in plain Python."""
    by_partition: dict[int, list[bytes | None]] = {}
    for record in records:
        by_partition.setdefault(record.partition, []).append(record.value)
    places = {
        (row["file"], row["line"])
        for table in (CLICKS, QUARANTINED_CLICKS)
        for row in lake.rows(table)
        if Hour.of(row["log_date"], row["log_hour"]) == hour
    }
    found = []
    for file, offset in places:
        if offset <= FIRST_SAMPLED_LINES or offset % SAMPLED_EVERY == 0:
            with suppress(ValueError):
                found.append(json.loads(by_partition[int(file.rpartition("/")[2])][offset] or b""))
    return [line for line in found if isinstance(line, dict)]


def test_an_hour_has_passed_when_every_partition_is_read_up_to_its_end(streamed: StreamedLake) -> None:
    settings, source = streamed.settings, streamed.source
    assert has_passed(settings, source, HOUR, HOUR.end), "an empty topic has nothing to wait for"
    assert not has_passed(settings, source, HOUR, HOUR.end - timedelta(seconds=1)), "the hour is not over"
    lines = [
        Record(0, at(HOUR, 10), click("a", "2026-03-01T08:10:00Z")),
        Record(1, at(HOUR, 20), click("b", "2026-03-01T08:20:00Z")),
        Record(1, at(HOUR, 70), click("c", "2026-03-01T09:10:00Z")),
    ]
    streamed.broker.produce(streamed.topic, lines)
    assert not has_passed(settings, source, HOUR, HOUR.end)
    assert is_settleable(settings, source, HOUR, HOUR.end + timedelta(minutes=source.grace_minutes))
    assert has_passed(settings, source, HOUR.plus(-1), HOUR.end), "it has no records"
    streamed.read_all()
    assert has_passed(settings, source, HOUR, HOUR.end)
    streamed.broker.produce(streamed.topic, [Record(2, at(HOUR, 130), click("d", "2026-03-01T10:10:00Z"))])
    assert has_passed(settings, source, HOUR.plus(1), HOUR.plus(1).end), "what is unread is of a later hour"


def test_what_comes_to_a_settled_hour_is_counted_by_the_next_run(streamed: StreamedLake) -> None:
    streamed.broker.produce(streamed.topic, [Record(0, at(HOUR, 1), click("a", "2026-03-01T08:01:00Z"))])
    streamed.read_all()
    streamed.run_all(str(HOUR))
    streamed.broker.produce(streamed.topic, [Record(1, at(HOUR, 2), click("late", "2026-03-01T08:02:00Z"))])
    streamed.read_all()
    streamed.run_all(str(HOUR.plus(1)))
    accounting = streamed.accounting()
    assert accounting["2026-03-01T08"]["accepted"] == 2
    assert accounting["2026-03-01T09"]["lines"] == 0
    for published in AGGREGATES.values():
        assert [row["click_count"] for row in streamed.rows(published)] == [2]


def test_an_hour_whose_micro_batches_are_no_longer_kept_keeps_its_accounting(streamed: StreamedLake) -> None:
    from spark_jobs.io import Lake

    streamed.broker.produce(streamed.topic, [Record(0, at(HOUR, 1), click("a", "2026-03-01T08:01:00Z"))])
    streamed.read_all()
    streamed.run("ingest", str(HOUR))
    before = streamed.accounting()["2026-03-01T08"]
    Lake(streamed.spark, streamed.settings).compact(STREAM_BATCHES, leave_out="true")
    assert streamed.rows(STREAM_BATCHES) == []
    streamed.run("ingest", str(HOUR))
    assert streamed.accounting()["2026-03-01T08"] == before
    assert before["accepted"] == 1


def test_an_hour_in_which_nothing_came_can_be_run(streamed: StreamedLake) -> None:
    streamed.run_all(str(HOUR))
    assert streamed.accounting()["2026-03-01T08"]["lines"] == 0

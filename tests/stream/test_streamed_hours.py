"""The log hours of a streamed source: finalised when they are over, then counted, checked and published as any."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from include.hours import Hour
from include.streams.position import has_passed, waits_for
from include.tables import AGGREGATES, CLICKS, INGEST_ACCOUNTING, QUARANTINED_CLICKS, STREAM_BATCHES, Table
from samples.sample_logs import make_sample
from samples.sample_spec import SampleSpec
from spark_jobs.lines.json_fields import FIRST_SAMPLED_LINES, SAMPLED_EVERY
from tests.stream.kafka_broker import Record
from tests.stream.landed_records import landed_records
from tests.stream.streamed_home import PLACE, multiset
from tests.stream.streamed_lake import StreamedLake
from tests.support.temporary_lake import JOBS, SOURCES, TemporaryLake, click, make_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPEC = SampleSpec(start=Hour.parse("2026-03-01T08"), hours=2, clicks_per_hour=1500, seed=31)
HOUR = Hour.parse("2026-03-01T08")
#: What the batch and the stream measure differently: files, fields of sampled lines, order within a file.
OF_FILES = {"files", "bytes", "sampled_lines", "sampled_fields", "out_of_order", "duplicates_of"}

pytestmark = pytest.mark.slow


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
    # All hours but the last are finalised while that one is still read; what is open is not counted.
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
        field_counts = {(row["path"], row["type"]): row["lines"] for row in account["sampled_fields"]}
        countries = [line["geo"]["country"] for line in lines if line.get("geo")]
        assert field_counts["event_id", "string"] == sum(isinstance(line.get("event_id"), str) for line in lines)
        assert field_counts["geo.country", "string"] == sum(isinstance(country, str) for country in countries)


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
    parsed_lines = []
    for file, offset in places:
        if offset <= FIRST_SAMPLED_LINES or offset % SAMPLED_EVERY == 0:
            with suppress(ValueError):
                parsed_lines.append(json.loads(by_partition[int(file.rpartition("/")[2])][offset] or b""))
    return [line for line in parsed_lines if isinstance(line, dict)]


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
    assert waits_for(settings, source, HOUR, HOUR.end + timedelta(minutes=source.grace_minutes)) is None
    assert has_passed(settings, source, HOUR.plus(-1), HOUR.end), "it has no records"
    streamed.read_all()
    assert has_passed(settings, source, HOUR, HOUR.end)
    streamed.broker.produce(streamed.topic, [Record(2, at(HOUR, 130), click("d", "2026-03-01T10:10:00Z"))])
    assert has_passed(settings, source, HOUR.plus(1), HOUR.plus(1).end), "what is unread is of a later hour"


def test_many_hours_are_asked_for_with_one_consumer(streamed: StreamedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run may open hundreds of hours again. Each is judged for itself: of the last, a record is not read."""
    from include.streams import broker_topic

    opened = []
    consumer = broker_topic.Consumer
    monkeypatch.setattr(broker_topic, "Consumer", lambda options: opened.append(1) or consumer(options))
    hours = [HOUR.plus(shift) for shift in range(40)]
    streamed.broker.produce(streamed.topic, [line for hour in hours for line in clicks_at(hour, f"{hour}")])
    streamed.read_all()
    streamed.broker.produce(streamed.topic, clicks_at(hours[-1], "unread", partition=1))
    streamed.run("ingest", str(hours[0]), str(hours[-1].plus(2)))
    assert len(opened) == 1
    closed = {hour: row["is_closed"] for hour, row in streamed.accounting().items()}
    assert closed == {str(hour): True for hour in hours[:-1]} | {str(hours[-1]): False, str(hours[-1].plus(1)): False}


def test_an_hour_whose_micro_batches_are_no_longer_kept_keeps_its_accounting(streamed: StreamedLake) -> None:
    from spark_jobs.lake.lake import Lake

    streamed.broker.produce(streamed.topic, [Record(0, at(HOUR, 1), click("a", "2026-03-01T08:01:00Z"))])
    streamed.read_all()
    streamed.run("ingest", str(HOUR))
    before = streamed.accounting()["2026-03-01T08"]
    Lake(streamed.spark, streamed.settings).compact(STREAM_BATCHES, leave_out="true")
    assert streamed.rows(STREAM_BATCHES) == []
    streamed.run("ingest", str(HOUR))
    assert streamed.accounting()["2026-03-01T08"] == before
    assert before["accepted"] == 1


def published_clicks(lake: TemporaryLake) -> dict[str, int]:
    """Published clicks by click hour; both tables say the same."""
    by_table = []
    for published in AGGREGATES.values():
        counts: Counter[str] = Counter()
        for row in lake.rows(published):
            counts[str(Hour.of(row["click_date"], row["click_hour"]))] += row["click_count"]
        by_table.append(counts)
    assert by_table[0] == by_table[1]
    return dict(by_table[0])


def clicks_at(hour: Hour, *ids: str, partition: int = 0) -> list[Record]:
    """A record for each id, all of one minute."""
    return [Record(partition, at(hour, 5), click(name, f"{hour}:05:00Z", f"http://shop.test/{name}")) for name in ids]


def test_what_comes_weeks_late_to_a_finalised_hour_is_counted_by_the_next_run(streamed: StreamedLake) -> None:
    """Further back than any click hour is from a log hour; and the run is begun again after it was killed."""
    weeks_later = HOUR.plus(20 * 24)
    streamed.broker.produce(streamed.topic, clicks_at(HOUR, "a"))
    streamed.read_all()
    streamed.run_all(str(HOUR))
    streamed.broker.produce(streamed.topic, clicks_at(HOUR, "late", "later") + clicks_at(weeks_later, "b"))
    streamed.read_all()
    for job in ("ingest", "ingest", "aggregate", "validate", "publish"):
        streamed.run(job, str(weeks_later))
    accounting = streamed.accounting()
    assert (accounting[str(HOUR)]["accepted"], accounting[str(weeks_later)]["accepted"]) == (3, 1)
    assert published_clicks(streamed) == {str(HOUR): 3, str(weeks_later): 1}
    # The next run has nothing to open again.
    streamed.run("ingest", str(weeks_later.plus(1)))
    assert streamed.accounting()[str(weeks_later.plus(1))]["reopened_log_hours"] == []


def test_hours_that_wait_long_to_be_finalised_are_not_forgotten(
    streamed: StreamedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their micro-batches are added up as soon as the first of them is finalised."""
    from spark_jobs.hours import stream_batches

    monkeypatch.setattr(stream_batches, "MOST_FILES", 0)
    monkeypatch.setattr(stream_batches, "KEPT_DAYS", -1)
    hours = [HOUR.plus(shift) for shift in range(3)]
    streamed.configure(max_rows_per_batch=3)
    for hour in hours:
        lines = [*clicks_at(hour, f"{hour}-1", f"{hour}-2"), Record(1, at(hour, 6), b"no click")]
        streamed.broker.produce(streamed.topic, [*lines, *clicks_at(hour, f"{hour}-1", f"{hour}-3")])
    streamed.read_all()
    batches = streamed.rows(STREAM_BATCHES)
    streamed.run("ingest", str(hours[0]))
    assert len(streamed.rows(STREAM_BATCHES)) == len(hours) * 2 < len(batches)
    streamed.run_all(str(hours[0]), str(hours[-1].plus(1)))
    assert published_clicks(streamed) == {str(hour): 3 for hour in hours}
    for hour in hours:
        account = streamed.accounting()[str(hour)]
        assert (account["lines"], account["accepted"], account["duplicates"]) == (5, 3, 1)
        assert account["quarantined_by_reason"] == {"not_json": 1}
        assert account["is_closed"], "how far the topic is read is known still"
    # What comes then is added to the sums, again and again.
    for number in (4, 5):
        streamed.broker.produce(streamed.topic, clicks_at(hours[0], f"{hours[0]}-{number}"))
        streamed.read_all()
        streamed.run("ingest", str(hours[-1]))
        assert streamed.accounting()[str(hours[0])]["accepted"] == number


def test_what_is_streamed_into_an_hour_that_the_batch_has_ingested_is_added(streamed: StreamedLake) -> None:
    streamed.settings.sources_file.write_text(SOURCES, encoding="utf-8")
    streamed.land(str(HOUR), {"a.json": click("landed", f"{HOUR}:01:00Z") + b"no click\n"})
    streamed.run_all(str(HOUR))
    streamed.configure()
    for ids in (["1", "2", "3"], ["4"]):
        streamed.broker.produce(streamed.topic, clicks_at(HOUR, *ids))
        streamed.read_all()
        streamed.run("ingest", str(HOUR.plus(1)))
    for job in JOBS[1:]:
        streamed.run(job, str(HOUR.plus(1)))
    account = streamed.accounting()[str(HOUR)]
    assert (account["lines"], account["accepted"], account["quarantined"]) == (6, 5, 1)
    assert published_clicks(streamed) == {str(HOUR): 5}


def test_what_comes_of_log_hours_that_nobody_has_run_is_published_by_the_next_run(streamed: StreamedLake) -> None:
    """Of a producer that was offline, or of before the stream's first run: yesterday, and further back than a month."""
    hours = [HOUR.plus(-2000), HOUR.plus(-800), HOUR.plus(-20), HOUR.plus(-1)]
    for number, hour in enumerate(hours):
        streamed.broker.produce(streamed.topic, clicks_at(hour, *(f"{hour}-{index}" for index in range(number + 1))))
    streamed.broker.produce(streamed.topic, clicks_at(HOUR, "now") + clicks_at(HOUR.plus(5), "later"))
    streamed.read_all()
    streamed.run_all(str(HOUR))
    expected = {str(hour): number + 1 for number, hour in enumerate(hours)} | {str(HOUR): 1}
    assert published_clicks(streamed) == expected
    assert set(streamed.accounting()) == set(expected), "a later hour has its own run"


def test_a_new_topic_starts_its_own_count(streamed: StreamedLake) -> None:
    streamed.broker.produce(streamed.topic, clicks_at(HOUR, *map(str, range(20))))
    streamed.read_all()
    assert has_passed(streamed.settings, streamed.source, HOUR, HOUR.end)

    streamed.topic = f"{streamed.topic}-2"
    streamed.configure()
    streamed.broker.create_topic(streamed.topic, 3)
    shutil.rmtree(streamed.settings.streams / "web")
    streamed.broker.produce(streamed.topic, clicks_at(HOUR.plus(1), "a"))
    assert not has_passed(streamed.settings, streamed.source, HOUR.plus(1), HOUR.plus(1).end), "none of it is read"
    streamed.read_all()
    assert has_passed(streamed.settings, streamed.source, HOUR.plus(1), HOUR.plus(1).end)
    streamed.broker.produce(streamed.topic, clicks_at(HOUR.plus(1), "b", "c"))
    streamed.run("ingest", str(HOUR), str(HOUR.plus(2)))
    accounting = streamed.accounting()
    assert not accounting[str(HOUR.plus(1))]["is_closed"], "two of its records are not read"
    assert (accounting[str(HOUR)]["lines"], accounting[str(HOUR.plus(1))]["lines"]) == (20, 1)


def test_an_hour_in_which_nothing_came_can_be_run(streamed: StreamedLake) -> None:
    streamed.run_all(str(HOUR))
    assert streamed.accounting()["2026-03-01T08"]["lines"] == 0

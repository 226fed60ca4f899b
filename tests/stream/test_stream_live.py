"""Live counts of streamed clicks, against counts made in plain Python; and what a stream says of its progress."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from deltalake import DeltaTable

from include.hours import Hour
from include.tables import CLICKS, CLICKS_BY_COUNTRY_LIVE, CLICKS_BY_URL_LIVE, STREAM_PROGRESS
from samples.sample_logs import make_sample
from samples.sample_spec import SampleSpec
from tests.stream.kafka_broker import Record
from tests.stream.landed_records import landed_records
from tests.stream.live_truth import live_counts, true_counts
from tests.stream.streamed_lake import StreamedLake
from tests.support.temporary_lake import click

SPEC = SampleSpec(start=Hour.parse("2026-03-01T08"), hours=2, clicks_per_hour=3000, seed=41)
HOUR = Hour.parse("2026-03-01T08")


def test_live_counts_are_those_of_the_clicks_by_minute_and_hour(tmp_path: Path, streamed: StreamedLake) -> None:
    # The sample's late clicks come up to 5 hours late.
    pipeline = streamed.settings.pipeline_file
    pipeline.write_text(pipeline.read_text() + "\n[live]\nwatermark_minutes = 400\n", encoding="utf-8")
    make_sample(SPEC, tmp_path / "landing")
    records = list(landed_records(tmp_path / "landing", "web", list(SPEC.log_hours), partitions=3))
    streamed.configure(max_rows_per_batch=2500)
    for part in (records[: len(records) // 3], records[len(records) // 3 :]):
        streamed.broker.produce(streamed.topic, part)
        streamed.read_all(live=True)
    assert live_counts(streamed, CLICKS_BY_URL_LIVE, "url") == true_counts(streamed, "url")
    assert live_counts(streamed, CLICKS_BY_COUNTRY_LIVE, "country_code") == true_counts(streamed, "country_code")
    bots = sum(row["is_bot"] for row in streamed.rows(CLICKS))
    hourly = [row for row in streamed.rows(CLICKS_BY_URL_LIVE) if row["window_seconds"] == 3600]
    assert sum(row["bot_click_count"] for row in hourly) == bots > 0

    progress = streamed.rows(STREAM_PROGRESS)
    of_topic = [row for row in progress if row["query"] == "clicks"]
    assert sum(row["rows"] for row in of_topic) == len(records)
    assert max(row["lag"] for row in of_topic) > 0, "there were several micro-batches"
    last = {row["partition"]: row for row in sorted(of_topic, key=lambda row: row["batch_id"])}
    assert {row["lag"] for row in last.values()} == {0}
    assert sum(row["next_offset"] for row in last.values()) == len(records)
    assert {row["state_rows"] for row in last.values()} == {len({row["event_id"] for row in streamed.rows(CLICKS)})}
    assert sum(row["rows"] for row in progress if row["query"] == "url") == len(streamed.rows(CLICKS))

    # Spark and delta-rs lose commits of each other, without an error.
    tables = sorted(folder for folder in streamed.settings.lake.iterdir() if folder.is_dir())
    assert {CLICKS.name, CLICKS_BY_URL_LIVE.name, STREAM_PROGRESS.name} <= {folder.name for folder in tables}
    for folder in tables:
        for commit in DeltaTable(folder).history():
            assert commit.get("engineInfo", commit.get("clientVersion", "")).startswith("delta-rs"), (folder, commit)


def test_a_click_too_late_for_live_is_a_click_and_said_to_be_too_late(streamed: StreamedLake) -> None:
    def record(event_id: str, minutes: float, arrived: float) -> Record:
        at = HOUR.start + timedelta(minutes=minutes)
        arrival = int((HOUR.start + timedelta(minutes=arrived)).timestamp() * 1000)
        return Record(0, arrival, click(event_id, at.isoformat()))

    # 10 minutes after 09:00 the hour 08 is over; a click of 08:30 at 09:05 is late, but not too late.
    for number, records in enumerate(
        (
            [record("a", 30, 30), record("b", 65, 65), record("late", 30, 65.1)],
            [record("c", 75, 75)],
            [record("too late", 31, 76), record("too late too", 59, 76)],
        )
    ):
        streamed.broker.produce(streamed.topic, records)
        streamed.read_all(live=True)
        assert len(streamed.rows(CLICKS)) == [3, 4, 6][number]
    hourly = {
        row["window_start"].hour: row["click_count"]
        for row in streamed.rows(CLICKS_BY_URL_LIVE)
        if row["window_seconds"] == 3600
    }
    assert hourly == {8: 2, 9: 2}
    too_late = [row["too_late"] for row in streamed.rows(STREAM_PROGRESS) if row["query"] == "url" and row["rows"]]
    assert sorted(too_late) == [0, 0, 2]

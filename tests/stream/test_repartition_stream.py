"""Another number of state partitions for a stopped stream: what it counts afterwards is exact."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from include.hours import Hour
from include.settings import REPOSITORY
from include.tables import CLICKS, CLICKS_BY_URL_LIVE
from samples.sample_logs import make_sample
from samples.sample_spec import SampleSpec
from spark_jobs.stream.checkpoint import StreamCheckpoint
from tests.stream.kafka_broker import Record
from tests.stream.landed_records import landed_records
from tests.stream.streamed_lake import StreamedLake
from tests.support.temporary_lake import click

SPEC = SampleSpec(start=Hour.parse("2026-03-01T08"), hours=2, clicks_per_hour=2000, seed=53)


def half_read(folder: Path, streamed: StreamedLake) -> int:
    """Stop the stream after half of the sample, all of which is in the topic then; the sample's true clicks."""
    pipeline = streamed.settings.pipeline_file
    pipeline.write_text(pipeline.read_text() + "\n[live]\nwatermark_minutes = 400\n", encoding="utf-8")
    truth = make_sample(SPEC, folder / "landing")
    records = list(landed_records(folder / "landing", "web", list(SPEC.log_hours), partitions=3))
    streamed.broker.produce(streamed.topic, records[: len(records) // 2])
    streamed.read_all(live=True)
    streamed.broker.produce(streamed.topic, records[len(records) // 2 :])
    return sum(of.accepted for of in truth.log_hours.values())


def repartition(lake: StreamedLake, partitions: int) -> subprocess.CompletedProcess[str]:
    environment = {
        "CLICKMILL_HOME": str(lake.settings.home),
        "CLICKMILL_SOURCES": str(lake.settings.sources_file),
        "CLICKMILL_PIPELINE": str(lake.settings.pipeline_file),
    }
    return subprocess.run(
        [sys.executable, "-m", "clickmill", "repartition-stream", "--source", "web", "--partitions", str(partitions)],
        cwd=REPOSITORY,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_after_it_live_counts_go_on(tmp_path: Path, streamed: StreamedLake) -> None:
    lake, accepted = streamed, half_read(tmp_path, streamed)
    ran = repartition(lake, 3)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ran.stdout.splitlines() == [
        "web url: 3 state partitions instead of 2",
        "web country_code: 3 state partitions instead of 2",
    ]
    lake.read_all(live=True)
    assert StreamCheckpoint.of(lake.settings, "web", "url").state_partitions() == 3
    clicks = lake.rows(CLICKS)
    assert len(clicks) == len({row["event_id"] for row in clicks}) == accepted
    hourly = [row for row in lake.rows(CLICKS_BY_URL_LIVE) if row["window_seconds"] == 3600]
    assert sum(row["click_count"] for row in hourly) == accepted


def test_a_micro_batch_that_has_not_ended_is_to_be_ended_first(streamed: StreamedLake) -> None:
    lake, at = streamed, int(SPEC.start.start.timestamp() * 1000)
    lake.broker.produce(lake.topic, [Record(0, at, click("a", f"{SPEC.start}:00:00Z"))])
    lake.read_all(live=True)
    commits = StreamCheckpoint.of(lake.settings, "web", "url").folder / "commits"
    last = max(commits.glob("[0-9]*"), key=lambda file: int(file.name))
    last.unlink()
    (commits / f".{last.name}.crc").unlink(missing_ok=True)
    ran = repartition(lake, 3)
    assert ran.returncode == 1
    assert "the last micro-batch of web (url) has not ended; end it first: clickmill str" in ran.stderr

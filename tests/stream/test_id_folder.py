"""The ids that a stream knows, over its starts: in another number of partitions, and those that Spark's state had."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from include.log_hours import Hour
from include.tables import CLICKS, STREAM_BATCHES, STREAM_PROGRESS
from spark_jobs.stream.checkpoint import StreamCheckpoint
from spark_jobs.stream.id_folder import IdFolder
from spark_jobs.stream.topic import TopicInput
from tests.stream.broken_checkpoint import forget_end_of_batch, forget_last_commit
from tests.stream.kafka_broker import Record
from tests.stream.streamed_lake import StreamedLake
from tests.support.temporary_lake import click

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HOUR = Hour.parse("2026-03-01T08")


def produce(lake: StreamedLake, numbers: range) -> None:
    at = int(HOUR.start.timestamp() * 1000)
    lines = [click(f"e{number}", f"{HOUR}:00:00Z") for number in numbers]
    lake.broker.produce(lake.topic, [Record(number % 3, at, line) for number, line in enumerate(lines)])


def accepted(lake: StreamedLake) -> list[str]:
    return sorted(row["event_id"] for row in lake.rows(CLICKS))


def ids(count: int) -> list[str]:
    return sorted(f"e{number}" for number in range(count))


def folder_of(lake: StreamedLake) -> Path:
    return StreamCheckpoint.of(lake.settings, "web").folder / "ids"


def test_state_partitions_may_change_at_any_start(streamed: StreamedLake) -> None:
    for starts, partitions in enumerate([2, 5, 1, 4], 1):
        streamed.configure(state_partitions=partitions, max_rows_per_batch=20)
        produce(streamed, range(30 * starts))
        streamed.read_all()
        assert accepted(streamed) == ids(30 * starts)
    newest = max(streamed.rows(STREAM_PROGRESS), key=lambda row: row["batch_id"])
    assert newest["state_rows"] == 120
    assert newest["state_bytes"] == 120 * 24


def test_what_a_broken_micro_batch_has_left_is_not_taken_along(streamed: StreamedLake) -> None:
    """Its clicks would be duplicates of themselves when it is tried again."""
    produce(streamed, range(10))
    streamed.read_all()
    produce(streamed, range(20))
    streamed.read_all()
    checkpoint = StreamCheckpoint.of(streamed.settings, "web")
    forget_end_of_batch(checkpoint.folder, 1)
    streamed.configure(state_partitions=3)
    streamed.read_all()
    assert accepted(streamed) == ids(20)
    assert IdFolder(checkpoint).size()[0] == 20


def test_ids_of_a_checkpoint_with_sparks_state_are_known(
    streamed: StreamedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As earlier versions kept them: by ``dropDuplicatesWithinWatermark``, in RocksDB."""

    def first_arrivals(arrivals: DataFrame) -> DataFrame:
        seen_at = F.timestamp_seconds((F.unix_date("log_date") * 24 + F.col("log_hour")).cast("bigint") * 3600)
        now = F.current_timestamp()
        is_click = F.col("reason").isNull() & F.col("read").isNull()
        place = F.concat_ws("/", "log_date", "log_hour", "file", "line", "read.first_line", "read.last_line")
        keys = {"state_id": F.when(is_click, F.col("event_id")), "state_place": F.when(~is_click, place)}
        hours = F.make_dt_interval(hours=F.lit(6))
        return (
            arrivals.withColumns({**keys, "seen_at": F.least(F.greatest(seen_at, now - hours), now)})
            .withWatermark("seen_at", "7 hours")
            .dropDuplicatesWithinWatermark(list(keys))
            .drop(*keys, "seen_at")
        )

    with monkeypatch.context() as before:
        arrivals = TopicInput.arrivals
        before.setattr(TopicInput, "arrivals", lambda *given: first_arrivals(arrivals(*given)))
        before.setattr(IdFolder, "made_ready", lambda *_: None)
        produce(streamed, range(40))
        streamed.read_all()
        produce(streamed, range(50))
        streamed.read_all()
    folder = StreamCheckpoint.of(streamed.settings, "web").folder
    assert (folder / "state").is_dir()
    assert not (folder / "ids").exists()
    produce(streamed, range(60))
    streamed.read_all()
    assert accepted(streamed) == ids(60)
    assert not (folder / "state").exists()
    produce(streamed, range(70))
    streamed.read_all()
    assert accepted(streamed) == ids(70)


def test_ids_in_folders_by_partition_are_known(streamed: StreamedLake) -> None:
    """As the version before kept them: in files that are named after their micro-batches and newest log hour."""
    checkpoint = StreamCheckpoint.of(streamed.settings, "web")
    folder = folder_of(streamed)
    for batch_id, count in enumerate([40, 70]):
        before = set(folder.glob("*.npy"))
        produce(streamed, range(count))
        streamed.read_all()
        for number, file in enumerate(set(folder.glob("*.npy")) - before):
            partition = folder / "2" / str(number)
            partition.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, partition / f"{batch_id}_{batch_id}_{HOUR.number}.npy")
            # Its task was killed before it removed what is in this file too.
            shutil.copy(file, partition / f"{batch_id}_{batch_id}_{HOUR.number - 1}.npy")
    for file in (*folder.glob("*.json"), *folder.glob("*.npy")):
        file.unlink()
    (folder / "partitions").write_text("2\n")
    # The second micro-batch was cut off, with its ids kept and its clicks not.
    forget_end_of_batch(checkpoint.folder, 1)
    for table in (CLICKS, STREAM_BATCHES):
        forget_last_commit(streamed.settings.lake / table.name)
    streamed.read_all()
    assert accepted(streamed) == ids(70)
    assert IdFolder(checkpoint).size()[0] == 70
    assert not (folder / "partitions").exists()


def test_another_event_id_begins_with_none_known(streamed: StreamedLake, capfd: pytest.CaptureFixture[str]) -> None:
    produce(streamed, range(10))
    streamed.read_all()
    text = streamed.settings.sources_file.read_text(encoding="utf-8")
    streamed.settings.sources_file.write_text(text.replace('event_id = "event_id"', 'event_id = "visitor_id"', 1))
    streamed.settings.__dict__.pop("sources", None)
    streamed.read_all()
    assert "the stream of web knows no event ids from before this start" in capfd.readouterr().out


def test_what_no_manifest_names_is_removed_a_day_later(streamed: StreamedLake) -> None:
    """Before that it may be what a task of an overtaken query has written and its manifest is about to name."""
    produce(streamed, range(10))
    streamed.read_all()
    old, fresh = folder_of(streamed) / "old.npy", folder_of(streamed) / ".fresh.npy.tried"
    for file in (old, fresh):
        file.write_bytes(b"half")
    for file in folder_of(streamed).iterdir():
        if file != fresh:
            os.utime(file, (0, 0))
    produce(streamed, range(20))
    streamed.read_all()
    assert accepted(streamed) == ids(20)
    assert fresh.exists()
    assert not old.exists()

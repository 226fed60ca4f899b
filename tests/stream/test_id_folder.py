"""The ids that a stream knows, over its starts: in another number of partitions, and those taken from clicks."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from time import time

import pytest

from include.hours import Hour
from include.tables import CLICKS, STREAM_BATCHES, STREAM_PROGRESS
from spark_jobs.ids.id_manifest import IdManifest
from spark_jobs.stream.checkpoint import StreamCheckpoint
from spark_jobs.stream.id_folder import IdFolder
from tests.stream.broken_checkpoint import forget_end_of_batch, forget_last_commit
from tests.stream.kafka_broker import Record
from tests.stream.streamed_lake import StreamedLake
from tests.support.temporary_lake import click

HOUR = Hour.parse("2026-03-01T08")


def milliseconds(hour: Hour) -> int:
    return int(hour.start.timestamp() * 1000)


def line_of(number: int) -> bytes:
    return click(f"e{number}", f"{HOUR}:00:00Z")


def produce(lake: StreamedLake, numbers: range, hour: Hour = HOUR) -> None:
    records = [Record(place % 3, milliseconds(hour), line_of(number)) for place, number in enumerate(numbers)]
    lake.broker.produce(lake.topic, records)


def set_lateness(lake: StreamedLake, hours: int) -> None:
    lake.configure()
    text = lake.settings.sources_file.read_text(encoding="utf-8")
    lake.settings.sources_file.write_text(text.replace("[sources.web]\n", f"[sources.web]\nlateness_hours = {hours}\n"))
    lake.settings.__dict__.pop("sources", None)


def accepted(lake: StreamedLake) -> list[str]:
    return sorted(row["event_id"] for row in lake.rows(CLICKS))


def ids(count: int) -> list[str]:
    return sorted(f"e{number}" for number in range(count))


def folder_of(lake: StreamedLake) -> Path:
    return StreamCheckpoint.of(lake.settings, "web").folder / "ids"


def test_state_partitions_may_change_at_any_start(streamed: StreamedLake) -> None:
    for starts, partitions in enumerate([2, 5, 1], 1):
        streamed.configure(state_partitions=partitions, max_rows_per_batch=20)
        produce(streamed, range(30 * starts))
        streamed.read_all()
        assert accepted(streamed) == ids(30 * starts)
    newest = max(streamed.rows(STREAM_PROGRESS), key=lambda row: row["batch_id"])
    assert newest["state_rows"] == 90
    assert newest["state_bytes"] == 90 * 24


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


def test_a_lost_checkpoint_takes_its_ids_from_clicks(streamed: StreamedLake) -> None:
    """Those of a record that was read late too: its log hour is long over, and a copy of it comes as late."""
    broker, topic = streamed.broker, streamed.topic
    produce(streamed, range(30))
    produce(streamed, range(30, 32), HOUR.plus(-200))
    streamed.read_all()
    shutil.rmtree(StreamCheckpoint.of(streamed.settings, "web").folder)
    produce(streamed, range(10, 40))
    produce(streamed, range(30, 34), HOUR.plus(-199))
    # So far from the first one, it is another click: the lateness window says so, with and without a checkpoint.
    broker.produce(topic, [Record(0, milliseconds(HOUR.plus(streamed.source.lateness_hours + 1)), line_of(0))])
    streamed.configure(state_partitions=3)
    streamed.read_all()
    assert accepted(streamed) == sorted([*ids(40), "e0"])
    produce(streamed, range(40))
    streamed.read_all()
    assert accepted(streamed) == sorted([*ids(40), "e0"])


def test_raised_lateness_hours_find_copies_of_ids_that_were_forgotten(streamed: StreamedLake) -> None:
    """Also if the last micro-batch was cut off after its clicks were written: they are no copies of themselves."""
    set_lateness(streamed, 1)
    shifts = range(0, 12, 3)
    for hours in shifts:
        produce(streamed, range(hours, hours + 1), HOUR.plus(hours))
        streamed.read_all()
    known, _ = IdFolder(StreamCheckpoint.of(streamed.settings, "web")).size()
    assert known < len(shifts), "some are forgotten"
    checkpoint = StreamCheckpoint.of(streamed.settings, "web")
    last = checkpoint.last_ended()
    forget_end_of_batch(checkpoint.folder, last)
    forget_last_commit(streamed.settings.lake / STREAM_BATCHES.name)
    (folder_of(streamed) / f"{last}.json").unlink()
    set_lateness(streamed, 12)
    streamed.read_all()
    assert sum(row["accepted"] for row in streamed.rows(STREAM_BATCHES)) == len(shifts)
    for hours in shifts:
        produce(streamed, range(hours, hours + 1), HOUR.plus(11))
    streamed.read_all()
    assert accepted(streamed) == sorted(f"e{hours}" for hours in shifts)


@pytest.mark.parametrize("damaged", ["json", "npy"])
def test_ids_that_a_power_cut_has_taken_are_taken_from_clicks(
    streamed: StreamedLake, capfd: pytest.CaptureFixture[str], damaged: str
) -> None:
    produce(streamed, range(10))
    streamed.read_all()
    for file in folder_of(streamed).glob(f"*.{damaged}"):
        file.write_bytes(b"")
    produce(streamed, range(20))
    streamed.read_all()
    assert accepted(streamed) == ids(20)
    told = [line for line in capfd.readouterr().out.splitlines() if "cannot be read" in line]
    assert len(told) == 1
    assert told[0].startswith("the stream of web takes its event ids from clicks: ")


def test_ids_of_a_clock_that_was_ahead_are_forgotten_and_those_of_now_are_known(streamed: StreamedLake) -> None:
    produce(streamed, range(10))
    streamed.read_all()
    # As that clock has left it: by it, what was read before was forgotten.
    checkpoint = StreamCheckpoint.of(streamed.settings, "web")
    ahead = int(time() // 3600) + 400
    manifest = IdManifest.read(folder_of(streamed), checkpoint.last_ended())
    manifest.model_copy(update={"newest_hour": ahead, "files": ()}).write(folder_of(streamed), checkpoint.last_ended())
    produce(streamed, range(20))
    streamed.read_all()
    assert accepted(streamed) == ids(20)
    assert IdManifest.read(folder_of(streamed), checkpoint.last_ended()).newest_hour <= time() // 3600


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

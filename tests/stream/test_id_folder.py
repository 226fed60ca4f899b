"""The ids that a stream knows, over its starts: in another number of partitions, and those that Spark's state had."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from include.log_hours import Hour
from include.tables import CLICKS, STREAM_PROGRESS
from spark_jobs.stream import query
from spark_jobs.stream.checkpoint import StreamCheckpoint
from spark_jobs.stream.id_folder import IdFolder
from spark_jobs.stream.known_ids import IdFile
from tests.stream.broken_checkpoint import forget_end_of_batch
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


def files_of(lake: StreamedLake) -> dict[str, list[str]]:
    folder = StreamCheckpoint.of(lake.settings, "web").folder / "ids"
    return {
        str(partition.relative_to(folder)): [file.path.name for file in IdFile.in_folder(partition)]
        for partition in folder.glob("*/*")
    }


def test_state_partitions_may_change_at_any_start(streamed: StreamedLake) -> None:
    for starts, partitions in enumerate([2, 5, 1, 4], 1):
        streamed.configure(state_partitions=partitions, max_rows_per_batch=20)
        produce(streamed, range(30 * starts))
        streamed.read_all()
        assert accepted(streamed) == ids(30 * starts)
        assert set(files_of(streamed)) == {f"{partitions}/{number}" for number in range(partitions)}
    newest = max(streamed.rows(STREAM_PROGRESS), key=lambda row: row["batch_id"])
    assert newest["state_rows"] == 120
    assert newest["state_bytes"] >= 120 * 24


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

    def first_arrivals(arrivals: DataFrame, _: int) -> DataFrame:
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
        before.setattr(query, "repartition_by_id", first_arrivals)
        before.setattr(IdFolder, "fitted", lambda *_: None)
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


def test_a_start_that_was_killed_is_done_again(streamed: StreamedLake, tmp_path: Path) -> None:
    streamed.configure(state_partitions=2)
    produce(streamed, range(30))
    streamed.read_all()
    folder = StreamCheckpoint.of(streamed.settings, "web").folder / "ids"
    # Half of what 3 partitions need, before the mark; and what was to be removed after it.
    (folder / "3" / "0").mkdir(parents=True)
    (folder / "3" / "0" / "0_0_1.npy").write_bytes(b"half")
    (folder / "7" / "1").mkdir(parents=True)
    streamed.configure(state_partitions=3)
    produce(streamed, range(40))
    streamed.read_all()
    assert accepted(streamed) == ids(40)
    assert {name.split("/")[0] for name in files_of(streamed)} == {"3"}

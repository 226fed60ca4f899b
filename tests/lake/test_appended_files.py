"""Files that a stream appends, each micro-batch once; the checksum beside each version; what is refused. No Spark."""

from __future__ import annotations

import json
import os
from datetime import date
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from include.errors import ClickmillError
from include.settings import Settings
from include.stored_rows import arrow_schema
from include.tables import QUARANTINED_CLICKS
from spark_jobs.lake import version_checksums
from spark_jobs.lake.data_files import EVERY_FILE, TableVersion
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.new_files import NewFile, files_of
from spark_jobs.lake.transactions import StreamTransaction

SCHEMA = arrow_schema(QUARANTINED_CLICKS, QUARANTINED_CLICKS.column_names)


@pytest.fixture
def lake(settings: Settings) -> Lake:
    return Lake(cast(SparkSession, None), settings)


def new_files(lake: Lake, line: int) -> list[NewFile]:
    """One file, of one line."""
    row = {
        "source": "web", "log_date": date(2026, 3, 1), "log_hour": 8, "file": "clicks/0", "line": line,
        "reason": "not_json", "raw": "x", "bytes": 1,
    }  # fmt: skip
    folder = lake.folder_for_files(QUARANTINED_CLICKS)
    return list(files_of([pa.RecordBatch.from_pylist([row], SCHEMA)], QUARANTINED_CLICKS, folder))


def append(lake: Lake, number: int) -> None:
    lake.append(QUARANTINED_CLICKS, new_files(lake, number), StreamTransaction("stream", number))


def lines(lake: Lake) -> list[int]:
    return sorted(row["line"] for row in lake.read_rows(QUARANTINED_CLICKS, ["line"], []))


def checksums(lake: Lake) -> dict[int, dict[str, Any]]:
    log = Path(lake.path(QUARANTINED_CLICKS)) / "_delta_log"
    return {int(file.stem): json.loads(file.read_bytes()) for file in log.glob("*.crc")}


def meanwhile(lake: Lake, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Between a look at the table and the commit that follows, another commits this micro-batch."""
    look = TableVersion.newest

    def look_and_commit(*arguments: Any) -> TableVersion:
        version = look(*arguments)
        monkeypatch.undo()
        added = new_files(lake, number)
        look(*arguments).commit(added, [], StreamTransaction("stream", number).as_committed())
        return version

    monkeypatch.setattr(TableVersion, "newest", look_and_commit)


def test_a_micro_batch_that_another_commits_meanwhile_is_there_once(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(lake, 0)
    meanwhile(lake, monkeypatch, 1)
    append(lake, 1)
    assert lines(lake) == [0, 1]
    append(lake, 1)
    assert lines(lake) == [0, 1]


def test_each_appended_version_has_a_checksum_of_its_files_and_few_are_kept(lake: Lake) -> None:
    for number in range(25):
        append(lake, number)
    kept_checksums = checksums(lake)
    assert sorted(kept_checksums) == list(range(16, 26))
    for number, checksum in kept_checksums.items():
        files = DeltaTable(lake.uri(QUARANTINED_CLICKS), version=number).file_uris()
        assert checksum["numFiles"] == len(files) == number
        assert checksum["tableSizeBytes"] == sum(Path(file).stat().st_size for file in files)


def test_no_checksum_stays_where_some_versions_are_no_appends(lake: Lake) -> None:
    for number in range(0, 40, 2):
        append(lake, number)
        append(lake, number + 1)
        lake.exchange_files(QUARANTINED_CLICKS, new_files(lake, 100 + number), [])
    newest = DeltaTable(lake.uri(QUARANTINED_CLICKS)).version()
    assert all(number > newest - 11 for number in checksums(lake))


def test_what_a_micro_batch_has_written_is_on_the_disk_before_what_refers_to_it(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[str] = []
    flush = os.fsync

    def note(file: int) -> None:
        kept.append(Path(os.readlink(f"/proc/self/fd/{file}")).name)
        flush(file)

    monkeypatch.setattr(os, "fsync", note)
    files = new_files(lake, 0)
    data = Path(files[0].path)
    assert kept == [data.name, data.parent.name], "a file, and its name in the folder"
    lake.append(QUARANTINED_CLICKS, files, StreamTransaction("stream", 0))
    assert kept[2:] == [f"{1:020}.json", "_delta_log"]


def test_after_a_commit_of_another_there_is_no_checksum(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    append(lake, 0)
    look = TableVersion.newest

    def look_and_commit(*arguments: Any) -> TableVersion:
        version = look(*arguments)
        look(*arguments).commit(new_files(lake, 7), [])
        return version

    with monkeypatch.context() as patch:
        patch.setattr(TableVersion, "newest", look_and_commit)
        append(lake, 1)
    assert lines(lake) == [0, 1, 7]
    assert sorted(checksums(lake)) == [1]
    append(lake, 2)
    assert {number: checksum["numFiles"] for number, checksum in checksums(lake).items()} == {1: 1, 4: 4}


def test_a_checksum_that_cannot_be_written_is_no_failure(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(version_checksums, "write_whole", refuse)
    append(lake, 0)
    assert (lines(lake), checksums(lake)) == ([0], {})


def test_files_of_another_type_than_the_stored_one_are_refused(lake: Lake) -> None:
    number = SCHEMA.get_field_index("bytes")
    stored = SCHEMA.set(number, pa.field("bytes", pa.int32()))
    folder = lake.uri(QUARANTINED_CLICKS)
    DeltaTable.create(folder, stored, partition_by=list(QUARANTINED_CLICKS.partitioned_by))
    refused = (
        "nothing is written to table quarantined_clicks: its column bytes is stored as INT, expected BIGINT; "
        "move the table's folder away"
    )
    with pytest.raises(ClickmillError, match=refused):
        append(lake, 0)
    with pytest.raises(ClickmillError, match=refused):
        lake.replace_files(QUARANTINED_CLICKS, new_files(lake, 0), EVERY_FILE)
    assert lines(lake) == []

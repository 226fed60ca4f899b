"""Every file counts once, whatever its name and its content, in batch and stream, by a real Spark."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from include.errors import ClickmillError, UsageError
from include.hours import Hour
from include.settings import Settings
from include.tables import CLICKS, QUALITY_RESULTS, QUARANTINED_CLICKS, STREAM_BATCHES
from tests.stream.files_lake import FilesLake
from tests.support.temporary_lake import TemporaryLake, click, make_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

HOUR = Hour.parse("2026-03-01T05")
NOON = f"{HOUR}:10:00Z"
NAMES = [
    "a.log", "b.log", "c[1].log", "a{b}", "q?", "*", "clicks-2026-03-01T05:00:00Z.json", "a b%20c.json", "{x,y}.gz",
    "line\nend.log", "back\\slash.log", "tür.log", "ends in space ", "#top?x=1&y", "$HOME 'and' \"quoted\"",
]  # fmt: skip
GIBIBYTE = 1 << 30


def _lines(name: str) -> bytes:
    return b"".join(click(f"{name}-{number}", NOON) for number in range(3))


def _ids(lake: TemporaryLake) -> list[str]:
    return sorted(row["event_id"] for row in lake.rows(CLICKS))


@pytest.fixture
def homes(tmp_path: Path, spark: SparkSession) -> tuple[TemporaryLake, FilesLake]:
    """A home for the batch, and one whose landing zone is streamed."""
    batch = TemporaryLake(spark, make_settings(tmp_path / "batch"))
    streamed = FilesLake(spark, make_settings(tmp_path / "streamed"))
    streamed.configure()
    return batch, streamed


def test_each_file_is_read_once_whatever_its_name(homes: tuple[TemporaryLake, FilesLake]) -> None:
    for lake in homes:
        lake.land(str(HOUR), {name: _lines(name) for name in NAMES})
        if isinstance(lake, FilesLake):
            lake.read_all()
            assert {row["file"]: row["lines"] for row in lake.rows(STREAM_BATCHES)} == dict.fromkeys(NAMES, 3)
        lake.run("ingest", str(HOUR))
        assert _ids(lake) == sorted(f"{name}-{number}" for name in NAMES for number in range(3))
        account = lake.accounting()[str(HOUR)]
        assert (account["lines"], account["files"], account["unread_files"]) == (3 * len(NAMES), len(NAMES), [])
        assert {row["file"] for row in lake.rows(CLICKS)} == set(NAMES), "names as they are"


def test_a_home_that_spark_would_take_for_a_pattern_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"CLICKMILL_HOME .*home \[1\] cannot be used: expected a path without"):
        Settings.from_environment({"CLICKMILL_HOME": str(tmp_path / "home [1]")})


def test_without_event_ids_a_stream_reads_each_file_once_too(tmp_path: Path, spark: SparkSession) -> None:
    lake = FilesLake(spark, make_settings(tmp_path / "home"))
    sources = lake.settings.sources_file
    sources.write_text(sources.read_text().replace('event_id = "event_id"\n', "") + "[sources.web.files]\n")
    lake.land(str(HOUR), {name: _lines(name) for name in NAMES})
    lake.read_all()
    lines = {row["file"]: row["lines"] for row in lake.rows(STREAM_BATCHES)}
    assert lines == dict.fromkeys(NAMES, 3)
    assert len(lake.rows(CLICKS)) == 3 * len(NAMES)


def test_a_name_that_is_no_utf8_is_read_by_the_batch_and_named_by_the_stream(
    homes: tuple[TemporaryLake, FilesLake],
) -> None:
    batch, streamed = homes
    for lake in (batch, streamed):
        lake.land(str(HOUR), {os.fsdecode(b"m\xfcnchen.log"): _lines("m"), "fine.log": _lines("fine")})
    batch.run("ingest", str(HOUR))
    assert batch.accounting()[str(HOUR)]["lines"] == 6
    assert {row["file"] for row in batch.rows(CLICKS)} == {"fine.log", r"m\xfcnchen.log"}
    streamed.read_all()
    streamed.run_all(str(HOUR))
    account = streamed.accounting()[str(HOUR)]
    assert (account["lines"], account["unread_files"], account["is_closed"]) == (3, [r"m\xfcnchen.log"], False)
    failed = [row for row in streamed.rows(QUALITY_RESULTS) if row["outcome"] == "fail"]
    assert {(row["check_id"], row["observed"]) for row in failed} >= {
        ("files_are_read", r"files_not_read = 1; m\xfcnchen.log")
    }


def test_what_is_no_file_is_named(homes: tuple[TemporaryLake, FilesLake]) -> None:
    batch, _ = homes
    folder = batch.land(str(HOUR), {"a.log": _lines("a")})
    (folder / "sub").mkdir()
    (folder / "gone.log").symlink_to(folder / "nowhere")
    batch.run("ingest", str(HOUR))
    account = batch.accounting()[str(HOUR)]
    assert (account["lines"], account["files"], account["unread_files"]) == (3, 1, ["gone.log", "sub"])
    for path in (folder / "gone.log", folder / "sub"):
        path.unlink() if path.is_symlink() else path.rmdir()


def test_an_error_of_the_disk_fails_the_run_and_replaces_nothing(homes: tuple[TemporaryLake, FilesLake]) -> None:
    batch, _ = homes
    batch.land(str(HOUR), {"a.log": _lines("a")})
    batch.run("ingest", str(HOUR))
    folder = batch.land(str(HOUR), {"b.log": _lines("b"), "torn.log.gz": b""})
    (folder / "torn.log.gz").write_bytes(gzip.compress(_lines("torn"))[:-9])
    # Linux answers EIO to whoever reads the first page of a process's memory.
    (folder / "broken.log").symlink_to("/proc/self/mem")
    with pytest.raises(ClickmillError, match=r"cannot be read: OSError: \[Errno 5\] Input/output error; nothing has"):
        batch.run("ingest", str(HOUR))
    assert _ids(batch) == ["a-0", "a-1", "a-2"]
    (folder / "broken.log").unlink()
    batch.run("ingest", str(HOUR))
    account = batch.accounting()[str(HOUR)]
    assert account["damaged_files"] == ["torn.log.gz"]
    assert {"b-0", "b-1", "b-2", "torn-0"} <= set(_ids(batch))


def _two_gibibytes(byte: bytes) -> bytes:
    """A gzip of some 2 MB with one line of 2 GiB: members of 64 MiB each."""
    return gzip.compress(byte * (GIBIBYTE // 16), compresslevel=1) * 32


@pytest.mark.slow
def test_a_line_of_two_gibibytes_is_quarantined_with_its_length_and_the_server_lives(
    homes: tuple[TemporaryLake, FilesLake],
) -> None:
    batch, streamed = homes
    for lake in (batch, streamed):
        folder = lake.land(str(HOUR), {"fine.log": _lines("fine")})
        content = gzip.compress(_lines("before")) + _two_gibibytes(b"x") + gzip.compress(b"\n" + _lines("after"))
        (folder / "huge.log.gz").write_bytes(content)
        (folder / "zeros.log.gz").write_bytes(_two_gibibytes(b"\x00"))
    streamed.read_all()
    for lake in (batch, streamed):
        lake.run("ingest", str(HOUR))
        assert _ids(lake) == sorted(f"{name}-{n}" for name in ("fine", "before", "after") for n in range(3))
        rows = [(row["file"], row["line"], row["reason"], row["bytes"]) for row in lake.rows(QUARANTINED_CLICKS)]
        assert rows == [("huge.log.gz", 4, "line_too_long", 2 * GIBIBYTE)]
        raw = {row["file"]: row["raw"] for row in lake.rows(QUARANTINED_CLICKS)}
        assert raw == {"huge.log.gz": "x" * 8192}
        assert lake.accounting()[str(HOUR)]["lines"] == 10, "a hole is no line"

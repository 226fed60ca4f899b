"""Places on a disk and in an object store: what is done with them has the same outcome in both."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

import pyarrow as pa
import pytest
from pyarrow import parquet

from include.errors import UsageError
from include.settings import REPOSITORY
from include.storage import (
    entries,
    filesystem_of,
    filled_here,
    find,
    is_on_disk,
    key_of,
    move,
    place,
    remove_folder,
    touch,
    write_once,
    write_whole,
)
from tests.support.s3_server import S3Server

#: Names that a URL, a pattern or a shell would take for something else.
NAMES = ["a b", "ü.json", "time_zone=Europe%2FBerlin", "100%", "x#y?z", "[a]*", "back\\slash", "~", "a+b&c=d"]


@pytest.fixture(params=["disk", pytest.param("s3", marks=[pytest.mark.slow, pytest.mark.servers])])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Of no files, and not there yet."""
    if request.param == "disk":
        return tmp_path / "data"
    server: S3Server = request.getfixturevalue("s3")
    return place(server.make_bucket(f"b{uuid4()}")) / "data"


def put(file: Path, content: bytes = b"") -> Path:
    return write_whole(file, content)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_stays_as_it_is(folder: Path, name: str) -> None:
    file = put(folder / name / name, b"content")
    assert (file.read_bytes(), file.name) == (b"content", name)
    (file_entry,) = entries(folder / name)
    assert (file_entry.path, file_entry.is_file, file_entry.size) == (file, True, 7)
    assert [entry.path for entry in entries(folder)] == [folder / name]
    assert place(str(file)).read_bytes() == b"content"


def test_what_is_in_a_folder(folder: Path) -> None:
    assert entries(folder) == []
    for name in ("b.json", "a.json", "_SUCCESS", "inner/c.json"):
        put(folder / "hour" / name, b"xy")
    entries_by_name = {entry.path.name: entry for entry in entries(folder / "hour")}
    assert list(entries_by_name) == ["_SUCCESS", "a.json", "b.json", "inner"]
    assert [name for name, entry in entries_by_name.items() if not entry.is_file] == ["inner"]
    assert entries_by_name["a.json"].changed_ns == (folder / "hour" / "a.json").stat().st_mtime_ns
    assert entries(folder / "hour" / "a.json") == []


def test_files_are_found_by_a_pattern_at_its_depth(folder: Path) -> None:
    wanted = [put(folder / f"log_date=2026-03-01/log_hour={hour:02d}/_SUCCESS") for hour in range(3)]
    for other in (".logs/_SUCCESS", "log_date=2026-03-01/_SUCCESS", "log_date=x/log_hour=1/deeper/_SUCCESS"):
        put(folder / other)
    assert sorted(entry.path for entry in find(folder, "log_date=*/log_hour=*/_SUCCESS")) == wanted
    assert not list(find(folder / "absent", "*"))


def test_a_file_is_replaced_whole_or_stays(folder: Path) -> None:
    file = put(folder / "page.html", b"old")

    def fail(stream: object) -> None:
        stream.write(b"half")  # type: ignore[attr-defined]
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        write_whole(file, fail)
    assert file.read_bytes() == b"old"
    assert [entry.path for entry in entries(folder)] == [file]
    put(file, b"new")
    assert file.read_bytes() == b"new"


def test_of_several_who_make_a_file_once_one_does(folder: Path) -> None:
    folder.mkdir(parents=True)
    with ThreadPoolExecutor(8) as pool:
        for number in range(20):
            file = folder / f"key{number}"
            contents = [str(writer).encode() for writer in range(8)]
            made = list(pool.map(lambda content, file=file: write_once(file, content), contents))
            assert made.count(True) == 1
            assert file.read_bytes() == contents[made.index(True)]
    assert len(entries(folder)) == 20


def test_a_private_file_is_its_owners_alone_from_its_first_byte_on(tmp_path: Path) -> None:
    modes = []

    def write(stream: BinaryIO) -> None:
        (fresh,) = tmp_path.iterdir()
        modes.append(fresh.stat().st_mode & 0o777)
        stream.write(b"secret")

    file = write_whole(tmp_path / "key", write, mode=0o600)
    assert (file.read_bytes(), file.stat().st_mode & 0o777, modes) == (b"secret", 0o600, [0o600])


def test_a_disk_without_hard_links_makes_a_file_once_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    file = tmp_path / "key"
    assert [write_once(file, content) for content in (b"first", b"second")] == [True, False]
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"first", 0o600)
    assert [entry.path for entry in entries(tmp_path)] == [file]


def test_files_are_moved_within_and_from_this_machine(folder: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.write_bytes(b"1")
    move(here, folder / "ready" / "one")
    move(folder / "ready" / "one", put(folder / "hour" / "one", b"before"))
    assert (folder / "hour" / "one").read_bytes() == b"1"
    assert not here.exists()
    assert entries(folder / "ready") == []
    with filled_here(folder / "ready") as filling:
        (filling / "two").write_bytes(b"2")
        move(filling / "two", folder / "hour" / "two")
    assert not filling.exists()
    assert [entry.path.name for entry in entries(folder / "hour")] == ["one", "two"]


def test_a_mark_is_as_new_when_it_is_set_again(folder: Path) -> None:
    mark = put(folder / "_SUCCESS", b"")
    os.utime(mark, (0, 0)) if is_on_disk(mark) else None
    before = mark.stat().st_mtime if is_on_disk(mark) else -1.0
    touch(mark)
    assert mark.read_bytes() == b""
    assert mark.stat().st_mtime > before


def test_a_folder_is_removed_and_nothing_beside_it(folder: Path) -> None:
    put(folder / "staged-1" / "a" / "b")
    kept = put(folder / "staged-10" / "b")
    remove_folder(folder / "staged-1")
    remove_folder(folder / "absent")
    assert not (folder / "staged-1").exists()
    assert kept.exists()


def test_arrow_reads_and_writes_it(folder: Path) -> None:
    rows = pa.table({"n": [1, 2]})
    folder.mkdir(parents=True)
    file = folder / "rows.parquet"
    parquet.write_table(rows, key_of(file), filesystem=filesystem_of(file))
    assert parquet.read_table(key_of(file), filesystem=filesystem_of(file)) == rows
    assert [entry.path.name for entry in entries(folder)] == ["rows.parquet"]


def test_another_process_reads_a_place_that_it_is_sent(folder: Path) -> None:
    """As Spark's workers do, which have imported nothing of ours before."""
    file = put(folder / "a.json", b"content")
    read = "import pickle, sys; print(pickle.load(sys.stdin.buffer).read_bytes())"
    done = subprocess.run(
        [sys.executable, "-c", read], input=pickle.dumps(file), capture_output=True, cwd=REPOSITORY, check=True
    )
    assert done.stdout == b"b'content'\n"


@pytest.mark.parametrize(
    "name", ["s3://", "s3:///", "gs://bucket", "abfss://files@account/x", "hdfs://host/x", "file:///x"]
)
def test_other_stores_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"expected (a folder, or )?s3://bucket/prefix"):
        place(name)

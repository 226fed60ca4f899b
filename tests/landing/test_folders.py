"""Folders as people have them: what can be landed is, and each other file is named with its reason."""

from __future__ import annotations

import bz2
import errno
import gzip
import json
import lzma
import os
import socket
import sqlite3
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from backports import zstd

from include.errors import ClickmillError, LeftOutError, NotALogError, UsageError
from include.hours import Hour
from include.settings import REPOSITORY, Settings
from include.source_fields import LineFields
from include.sources import Source
from spark_jobs.landing.file_kinds import kind_of
from spark_jobs.landing.given_files import given_files
from spark_jobs.landing.land import land_all, require_lines
from tests.landing.landing_zone import ACCESS, FIRST, NOW, home_of, land, landed_lines, log_line, write_log

LINE = log_line("05:00", "a")
WEB = Source(name="web", format="json", fields=LineFields(time="ts", url="url"))
EVENT = {"ts": "2026-03-01T05:00:00Z", "url": "http://shop.test/a"}
EVENTS = [EVENT | {"n": n, "of": {"a": [1, {"b": "}"}]}} for n in range(3)]


def said_of(settings: Settings, folder: Path) -> tuple[list[str], ClickmillError | None]:
    """What landing has said, and how it has ended."""
    lines: list[str] = []
    try:
        for line in land_all(settings, "access", [folder]):
            lines.append(line)
    except ClickmillError as error:
        return lines, error
    return lines, None


# --- what is in a folder --------------------------------------------------------------------------


def test_what_can_be_landed_of_a_folder_is_and_all_else_is_named(settings: Settings, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    good = [log_line("05:00", f"page{n}") for n in range(6)]
    write_log(logs / "access.log", good[0])
    write_log(logs / "access.log.1", good[1])
    write_log(logs / "access.log.2.gz", good[2])
    write_log(logs / "a b\n\x1b[2Jc.log", good[3])
    write_log(logs / os.fsdecode(b"caf\xe9.log"), good[4])
    write_log(logs / "sub" / "access.log", good[5])
    write_log(logs / "empty.log")
    write_log(logs / "error.log", b"2026/03/01 05:00:00 [error] 7#7: *3 open() failed, client: 192.0.2.7\n")
    write_log(logs / "apache.log", b"[Sun Mar 01 05:00:00.123456 2026] [core:error] [pid 7] AH00124: no\n")
    write_log(logs / "notes.txt", b"nothing here\n")
    (logs / "old.zip").write_bytes(b"PK\3\4" + bytes(30))
    (logs / "dangling").symlink_to("gone.log")
    (logs / "broken").symlink_to("/proc/self/mem")
    (logs / "null").symlink_to("/dev/null")
    (logs / "current").symlink_to(".")
    (logs / "up").symlink_to("../logs")
    (logs / "round").symlink_to("round")
    (logs / "twice.log").symlink_to("access.log")
    os.link(logs / "access.log", logs / "third.log")
    os.mkfifo(logs / "pipe.log")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(logs / "socket"))
        lines, error = said_of(settings, logs)
    assert isinstance(error, LeftOutError)
    assert (error.exit_code, str(error).split(" as ")[0]) == (4, "10 of 21 files left out,")
    assert landed_lines(settings.landing) == {FIRST: Counter(good)}
    assert all(line.isprintable() for line in lines)
    left_out = {line.split(f"{logs}/")[1].split()[0]: line for line in lines if "left out: " in line}
    reasons = {
        "error.log": "it looks like an error log of nginx",
        "apache.log": "it looks like an error log of Apache",
        "notes.txt": "has a time",
        "old.zip": "is a zip archive",
        "dangling": "a link to gone.log: No such file or directory",
        "broken": "Input/output error",
        "null": "it is a device",
        "round": "a link to round: Too many levels of symbolic links",
        "pipe.log": "it is a pipe",
        "socket": "it is a socket",
    }
    assert left_out.keys() == reasons.keys()
    for name, reason in reasons.items():
        assert reason in left_out[name]
    others = [line for line in lines if "nothing to do" in line]
    assert [line.split(f"{logs}/")[1].split()[0] for line in others] == [
        "empty.log",
        "third.log",
        "current",
        "twice.log",
        "up",
    ]


def test_a_folder_of_which_nothing_lands_is_an_error(settings: Settings, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    write_log(logs / "notes.txt", b"nothing here\n")
    os.mkfifo(logs / "pipe")
    lines, error = said_of(settings, logs)
    assert len(lines) == 2
    assert type(error) is ClickmillError
    assert str(error).startswith("2 of 2 files left out")


@pytest.mark.parametrize(
    ("offset", "is_local"),
    [("-0800", True), ("+05:30", True), ("0200", True), ("+0000", False), ("-00:00", False), ("0", False), ("", False)],
)
def test_times_of_w3c_that_are_said_to_be_local_are_refused(offset: str, is_local: bool) -> None:
    header = f"#Version: 1.0\r\n#GMT-Offset: {offset}\r\n#Fields: date time cs-uri\r\n2026-03-01 12:30:00 /a\r\n"
    kind = kind_of(header.encode())
    assert (kind is not None and kind.startswith("a log of local times (#GMT-Offset:)")) == is_local
    assert kind_of(header.partition("\n")[2].partition("\n")[2].encode()) is None


def test_times_of_w3c_that_are_said_to_be_local_land_by_the_zone_of_the_source(tmp_path: Path) -> None:
    lines = [b"#GMT-Offset: +0200\n", b"#Fields: date time cs-uri\n", b"2026-03-01 02:30:00 http://shop.test/a\n"]
    log = write_log(tmp_path / "a.log", *lines)
    settings = {"name": "w3c", "format": "w3c"}
    with pytest.raises(NotALogError, match="a log of local times"):
        land(Source.model_validate(settings), log, tmp_path / "landing", NOW)
    format_ = {"pattern": "%Y-%m-%d %H:%M:%S", "zone": "Africa/Cairo"}
    zoned = Source.model_validate(settings | {"fields": {"time_format": format_}})
    landed = land(zoned, log, tmp_path / "landing", NOW)
    assert landed is not None
    assert landed.lines == {Hour.parse("2026-03-01T00"): 3}


def test_a_file_that_is_named_stays_an_error(settings: Settings, tmp_path: Path) -> None:
    bad = write_log(tmp_path / "error.log", b"2026/03/01 05:00:00 [error] 7#7: no\n")
    with pytest.raises(NotALogError, match=r"looks like an error log of nginx; clickmill inspect"):
        list(land_all(settings, "access", [write_log(tmp_path / "a.log", LINE), bad]))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="pipe is a pipe; expected a log file"):
        list(land_all(settings, "access", [tmp_path / "pipe"]))
    with pytest.raises(UsageError, match=r"no file .*gone; expected"):
        list(land_all(settings, "access", [tmp_path / "gone"]))


def test_a_file_that_rotation_takes_away_meanwhile_is_left_out(settings: Settings, tmp_path: Path) -> None:
    files = [write_log(tmp_path / "logs" / f"{name}.log", log_line("05:00", name)) for name in "abc"]
    landing = land_all(settings, "access", [tmp_path / "logs"])
    assert "1 lines of" in next(landing)
    files[1].unlink()
    assert "left out: no file" in next(landing)
    with pytest.raises(LeftOutError):
        list(landing)
    assert landed_lines(settings.landing) == {FIRST: Counter([log_line("05:00", name) for name in "ac"])}


def test_a_folder_that_cannot_be_listed_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_log(tmp_path / "a.log", LINE)
    write_log(tmp_path / "b" / "c.log", LINE)
    listed = os.scandir

    def refusing(folder: Path) -> object:
        if Path(folder).name == "b":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return listed(folder)

    monkeypatch.setattr(os, "scandir", refusing)
    assert [(file.path.name, file.left_out) for file in given_files([tmp_path])] == [
        ("a.log", None),
        ("b", "Permission denied"),
    ]


def test_a_disk_error_of_the_landing_zone_is_none_of_a_file(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(tmp_path / "logs" / "a.log", LINE)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(gzip, "open", full)
    with pytest.raises(ClickmillError, match="No space left") as raised:
        list(land_all(settings, "access", [tmp_path / "logs"]))
    assert not isinstance(raised.value, NotALogError | LeftOutError)


def test_the_exit_code_says_that_files_were_left_out(settings: Settings, tmp_path: Path) -> None:
    write_log(tmp_path / "logs" / "access.log", LINE)
    write_log(tmp_path / "logs" / "error.log", b"2026/03/01 05:00:00 [error] 7#7: no\n")
    done = subprocess.run(
        [sys.executable, "-m", "clickmill", "land", "--source=access", str(tmp_path / "logs")],
        cwd=REPOSITORY, env=os.environ | home_of(settings), capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (4, 1)
    assert "1 of 2 files left out" in done.stderr
    assert "left out: no line of" in done.stdout
    assert "next: clickmill ingest" in done.stdout


# --- what a file is -------------------------------------------------------------------------------


def _tar() -> bytes:
    target = BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name in ("a.log", "b.log"):
            member = tarfile.TarInfo(name)
            member.size = len(LINE)
            archive.addfile(member, BytesIO(LINE))
    return target.getvalue()


def _zip() -> bytes:
    target = BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("access.log", LINE)
    return target.getvalue()


def _parquet() -> bytes:
    target = BytesIO()
    pq.write_table(pa.table({"line": [LINE]}), target)
    return target.getvalue()


def _sqlite() -> bytes:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE lines (line TEXT)")
    database.execute("INSERT INTO lines VALUES (?)", [LINE.decode()])
    return database.serialize()


#: Each has a whole line of the log in it, where its format lets it be.
FILES = {
    "tar": _tar(),
    "zip": _zip(),
    "Parquet": _parquet(),
    "SQLite": _sqlite(),
    "7z": b"7z\xbc\xaf\x27\x1c\0\4\n" + LINE,
    "rar": b"Rar!\x1a\x07\0\n" + LINE,
    "lz4": b"\x04\x22\x4d\x18\x64\n" + LINE,
    "lzma": lzma.compress(LINE, lzma.FORMAT_ALONE),
    "with compress": b"\x1f\x9d\x90\n" + LINE,
    "PDF": b"%PDF-1.7\n" + LINE,
    "picture": b"\xff\xd8\xff\xe0\0\x10JFIF\n" + LINE,
    "program": b"\x7fELF\2\1\1\n" + LINE,
    "systemd": b"LPKSHHRH\n" + LINE,
    "Avro": b"Obj\1\n" + LINE,
    "event log of Windows": b"ElfFile\0\n" + LINE,
    "UTF-32": LINE.decode().encode("utf-32"),
    "HTML": b"<!DOCTYPE html>\n<html><body>404\n" + LINE,
    "compressed twice": gzip.compress(LINE),
}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstd.compress, bz2.compress])
def test_what_is_no_text_is_refused_by_name(tmp_path: Path, kind: str, compress: type[bytes]) -> None:
    logs = tmp_path / "access.log"
    content = FILES[kind]
    logs.write_bytes(compress(gzip.compress(LINE) if kind == "compressed twice" and compress is not bytes else content))
    if kind == "compressed twice" and compress is bytes:
        assert land(ACCESS, logs, tmp_path / "landing", NOW) is not None
        return
    with pytest.raises(NotALogError, match=kind):
        land(ACCESS, logs, tmp_path / "landing", NOW)
    assert not list((tmp_path / "landing").rglob("*.gz"))


@pytest.mark.parametrize(
    "text",
    ["PARENT_ID,url\n", "PAR1\ta\n", "ORC\t1\n", "070701,a\n", "MZ,a\n", "BM 1\n", "BZh9 a\n", "7z a\n", "Obj,a\n",
     "LZIP,a\n", "PK,a\n", "\n\r\r\na\n", "RIFF,a\n", "ARROW1,a\n", "] a\n", "<190>Mar 10 nginx: a\n", "\0\0a\n"],
)  # fmt: skip
def test_text_is_not_taken_for_another_kind(text: str) -> None:
    assert kind_of(text.encode() + LINE * 9) is None


def test_other_bytes_are_a_binary_file(tmp_path: Path) -> None:
    logs = tmp_path / "wtmp"
    logs.write_bytes(bytes(range(256)) * 40)
    with pytest.raises(NotALogError, match="looks like a binary file"):
        land(ACCESS, logs, tmp_path / "landing", NOW)


@pytest.mark.parametrize(
    ("source", "content", "look"),
    [
        (ACCESS, json.dumps(EVENT).encode() + b"\n", "a log of JSON"),
        (WEB, LINE, "an access log"),
        (WEB, b"2026/03/01 05:00:00 [warn] 1#1: conflicting server name\n", "an error log of nginx"),
        (WEB, b"[Sun Mar  1 05:00:00 2026] [error] [client 192.0.2.7] File does not exist\n", "an error log of Apache"),
    ],
)
def test_what_is_of_another_format_is_named(tmp_path: Path, source: Source, content: bytes, look: str) -> None:
    with pytest.raises(NotALogError, match=f"it looks like {look}"):
        land(source, write_log(tmp_path / "a.log", content), tmp_path / "landing", NOW)


#: Arrays with an element on each line, and what of them a log has that is cut or still written.
_LINES = [*map(json.dumps, EVENTS)]
ELEMENTS_OF_AN_ARRAY = [
    "[\n" + ",\n".join(_LINES) + "\n]\n",
    "[" + ",\n".join(_LINES) + "]\n",
    "[\r\n  " + ",\r\n  ".join(_LINES) + "\r\n]\r\n",
    "[\n" + "\n,".join(_LINES) + "\n]",
    "[\n" + ",\n".join(_LINES) + ",\n",
]
ELEMENTS = [
    ",\n".join(_LINES) + ",\n",
    ",\n".join(_LINES) + "\n]\n",
    "  " + " ,\r\n  ".join(_LINES) + "\r\n",
    "," + "\n,".join(_LINES) + "\n",
    "\n,".join(_LINES) + "\n",
]


@pytest.mark.parametrize("text", [*ELEMENTS_OF_AN_ARRAY, *ELEMENTS])
def test_the_command_that_is_named_writes_an_object_a_line(tmp_path: Path, text: str) -> None:
    log = write_log(tmp_path / "an array.json.gz", text.encode())
    with pytest.raises(NotALogError) as refused:
        require_lines(log)
    command = str(refused.value).removesuffix(" writes it").split("such as ", 1)[1]
    lines = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout.splitlines()
    assert [*map(json.loads, lines)] == EVENTS


_PRETTY = json.dumps(EVENT, indent=1)
SHAPES = {
    "a JSON array": [
        json.dumps(EVENTS),
        json.dumps(EVENTS, indent=2),
        "[\n" + ",\n".join(map(json.dumps, EVENTS)) + "\n]\n",
        "\ufeff [ " + json.dumps(EVENT) + "\n]",
        "[]\n",
        "[\n  [1]\n]",
        *ELEMENTS_OF_AN_ARRAY,
    ],
    "JSON objects with commas between them": ELEMENTS,
    "one JSON object over several lines": [
        _PRETTY,
        "\n".join(json.dumps(event, indent=2) for event in EVENTS),
        "\n\n" + json.dumps(EVENT, indent="\t").replace("\n", "\r\n") + "\r\n",
        '{"data": [\n' + ",\n".join(map(json.dumps, EVENTS)) + "\n]}\n",
        '{"ts": "2026-03-01T05:00:00Z",\n "url": "http://shop.test/"}\n',
        '{\n "title": "' + "x" * (2 << 20) + '",' + _PRETTY[1:],
    ],
}


@pytest.mark.parametrize(("shape", "text"), [(shape, text) for shape, texts in SHAPES.items() for text in texts])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_json_that_is_not_an_object_a_line_is_refused_by_its_shape(
    tmp_path: Path, shape: str, text: str, encoding: str
) -> None:
    with pytest.raises(NotALogError, match=f"is {shape}; expected one JSON object a line, such as (jq -c|sed)"):
        land(WEB, write_log(tmp_path / "a.json", text.encode(encoding)), tmp_path / "landing", NOW)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(EVENT),
        json.dumps(EVENT) + "\n",
        "{\n" + json.dumps(EVENT) + "\n",
        '{"ts": "2026-03-01T05:0\n' + json.dumps(EVENT) + "\n",
        '{"cut": 1,\n' + json.dumps(EVENT) + "\n",
        "\n\n" + json.dumps(EVENT) + "\n\n",
        "[2026 no JSON\n" + json.dumps(EVENT) + "\n",
        "\ufeff" + json.dumps(EVENT) + "\n",
    ],
)
def test_bad_lines_are_not_taken_for_another_shape(tmp_path: Path, text: str) -> None:
    landed = land(WEB, write_log(tmp_path / "a.json", text.encode()), tmp_path / "landing", NOW)
    assert landed is not None
    assert sum(landed.lines.values()) == len(text.splitlines())

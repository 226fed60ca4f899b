"""Files are cut into lines as they are, whatever they are named, in memory that does not grow with them."""

from __future__ import annotations

import codecs
import gzip
import os
import random
import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from backports import zstd

from include.hours import Hour
from include.settings import REPOSITORY
from spark_jobs.lines import cut_lines, decompress
from spark_jobs.lines import read_lines as module
from spark_jobs.lines.read_lines import LINES, LandedFile, ReadFile, read_lines

HOUR = Hour.parse("2026-03-01T12")
COMPRESS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zstd.compress}
MIB = 1 << 20


def _read(path: Path) -> tuple[ReadFile, pa.Table]:
    read = ReadFile(LandedFile(path, HOUR))
    schema = LINES.remove(LINES.get_field_index("row_id"))
    table = pa.concat_tables([schema.empty_table(), *read_lines(read)])
    assert table.schema == schema
    assert table["line"].to_pylist() == list(range(1, len(table) + 1))
    assert set(table["file"].to_pylist()) <= {LandedFile(path, HOUR).name}
    assert set(table["hour"].to_pylist()) <= {HOUR.number}
    assert (read.lines, read.bytes) == (len(table), sum(table["bytes"].to_pylist()))
    return read, table


def _without_end(line: bytes) -> bytes:
    return line.removesuffix(b"\n").removesuffix(b"\r")


def _lines(path: Path) -> list[bytes]:
    """A whole file's lines, their lengths checked."""
    read, table = _read(path)
    assert read.damage is None
    lines = [_without_end(value) for value in table["value"].to_pylist()]
    assert table["bytes"].to_pylist() == [len(line) for line in lines]
    return lines


def _oracle(content: bytes) -> list[bytes]:
    """The lines of a whole file that is not UTF-16."""
    content = content.lstrip(b"\0")
    without_end = content.rstrip(b"\0")
    content = without_end if len(content) >= len(without_end) + 16 else content
    if b"\n" not in content:
        content = content.replace(b"\r", b"\n")
    lines = []
    for line in content.split(b"\n"):
        before, *behind_holes = re.split(rb"\0{16,}", line)
        lines += behind_holes if behind_holes and not before else [before, *behind_holes]
    lines = [re.sub(rb"^(\0|\xef\xbb\xbf)+", b"", line) for line in lines]
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines]


CONTENTS = {
    "nothing": b"",
    "only a line end": b"\n",
    "only a carriage return": b"\r",
    "only a byte order mark": b"\xef\xbb\xbf",
    "no final line end": b"a\nb",
    "final line end": b"a\nb\n",
    "empty lines": b"\n\na\n\n",
    "carriage returns": b"a\r\nb\r\n\r\nc\r",
    "carriage returns elsewhere": b"a\rb\n\r\r\nc\r\rd",
    "a byte order mark": b"\xef\xbb\xbfa\nb\n",
    "a byte order mark on the second line": b"a\n\xef\xbb\xbfb\n",
    "two byte order marks": b"\xef\xbb\xbf\xef\xbb\xbfa\n",
    "other line ends of Unicode": "a\u2028b\x85c\vd\fe\n".encode(),
    "zeros and bytes that are not UTF-8": b"\0\n\xff\0\n",
    "a hole at the start": b"\0" * 5000 + b"a\nb\n",
    "a hole at the start that is longer than a piece": b"\0" * (9 * MIB) + b"a\nb\n",
    "few zeros at the start": b"\0\0a\nb\n",
    "a hole before another line": b"a\n" + b"\0" * 200_000 + b"b\nc\n",
    "a hole before another line that is longer than a piece": b"a\n" + b"\0" * (17 * MIB) + b"b\n",
    "a hole after a line that a crash cut off": b"a\nhalf a li" + b"\0" * 4096 + b"c\nd\n",
    "a hole at the end": b"a\nb\n" + b"\0" * 4096,
    "a hole after half a line at the end": b"a\nb" + b"\0" * 4096,
    "zeros in each line but one": (b"\0" * 15 + b"\n") * 30 + b"\n" + (b"\0" * 15 + b"\n") * 9 + b"x",
    "a hole and a line end": b"a\n" + b"\0" * 100 + b"\nb\n",
    "a hole and a byte order mark": b"\0" * 100 + b"\xef\xbb\xbfa\n\xef\xbb\xbf\0\0b\n",
    "only a hole": b"\0" * 4096,
    "byte order marks longer than a piece": b"\xef\xbb\xbf" * (3 * MIB) + b"a\n",
    "carriage returns for line ends": b"a\rb\r\rc\r",
    "carriage returns for line ends but the last": b"a\rb",
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("suffix", COMPRESS)
def test_content_is_cut_into_its_lines(tmp_path: Path, content: bytes, suffix: str) -> None:
    file = tmp_path / f"a.log{suffix}"
    file.write_bytes(COMPRESS[suffix](content))
    assert _lines(file) == _oracle(content)


def test_lines_are_the_same_whatever_the_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    file = tmp_path / "a.log"
    for _ in range(200):
        piece_bytes = rng.randrange(64, 4096)
        kept = rng.randrange(1, 64)
        monkeypatch.setattr(cut_lines, "PIECE_BYTES", piece_bytes)
        monkeypatch.setattr(module, "_KEPT_BYTES", kept)
        monkeypatch.setattr(decompress, "_PIECE_BYTES", rng.randrange(64, 4096))
        longest = rng.choice([3, 60, 3 * piece_bytes])
        ends = rng.choice([[b"\n"], [b"\r\n"], [b"\n", b"\r\n", b"\r\r\n", b"\n\n"], [b"\r"]])
        # With a byte order mark all over, some piece begins with one.
        mark, hole = b"\xef\xbb\xbf", b"\0" * 15
        letters = rng.choice([[b"a", b"\r", b"\0", b"\xff", b"\xc3"], [mark], [mark, b"\0", b"a", hole], [hole]])
        content = b"".join(
            b"".join(rng.choices(letters, k=rng.randrange(longest))) + rng.choice(ends)
            for _ in range(rng.randrange(40))
        )
        content = rng.choice([b"", b"\xef\xbb\xbf"]) + content + rng.choice([b"", b"x", b"x\r"])
        file.write_bytes(content)
        expected = _oracle(content)
        _, table = _read(file)
        assert table["bytes"].to_pylist() == [len(line) for line in expected]
        for value, line in zip(table["value"].to_pylist(), expected, strict=True):
            # Of a line that is longer than a piece only the first is needed.
            is_cut = len(line) + 1 >= piece_bytes and value == line[:kept]
            assert is_cut or value in {line + end for end in (b"", b"\r", b"\n", b"\r\n")}


LOG = "".join(f'192.0.2.{n} - - "GET /caf\u00e9?q=\u4e16\U0001f600 HTTP/1.1" {n}\r\n' for n in range(400))
HALF = LOG.index("\n", len(LOG) // 2) + 1
#: Files in UTF-16, each of which is LOG.
UTF16 = {
    "little endian with a mark": codecs.BOM_UTF16_LE + LOG.encode("utf-16-le"),
    "big endian with a mark": codecs.BOM_UTF16_BE + LOG.encode("utf-16-be"),
    "little endian": LOG.encode("utf-16-le"),
    "big endian": LOG.encode("utf-16-be"),
    "little endian after a hole": bytes(70_000) + LOG.encode("utf-16-le"),
    "big endian after a hole": bytes(70_000) + LOG.encode("utf-16-be"),
    "a mark after a hole": bytes(70_000) + codecs.BOM_UTF16_BE + LOG.encode("utf-16-be"),
    "with a hole": LOG[:HALF].encode("utf-16-le") + bytes(5000) + LOG[HALF:].encode("utf-16-le"),
    "files put together": b"".join(line.encode("utf-16") for line in LOG.splitlines(keepends=True)),
    "line feeds alone": LOG.replace("\r", "").encode("utf-16"),
    "carriage returns alone": LOG.replace("\n", "").encode("utf-16"),
}


@pytest.mark.parametrize("content", UTF16.values(), ids=UTF16)
@pytest.mark.parametrize("piece_bytes", [97, MIB])
def test_utf_16_is_read_as_what_it_says(
    tmp_path: Path, content: bytes, piece_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decompress, "_PIECE_BYTES", piece_bytes)
    monkeypatch.setattr(decompress, "_READ_BYTES", piece_bytes)
    file = tmp_path / "a.log"
    file.write_bytes(content)
    assert b"\n".join(_lines(file)).decode() == LOG.replace("\r", "").removesuffix("\n")


@pytest.mark.parametrize("length", [1, 2, 3])
def test_half_a_character_of_utf_16_is_no_utf_8(tmp_path: Path, length: int) -> None:
    file = tmp_path / "a.log"
    file.write_bytes((LOG + "a\n").encode("utf-16") + "\U0001f600".encode("utf-16-le")[:length])
    *whole, before, half = _lines(file)
    assert (len(whole), before) == (400, b"a")
    with pytest.raises(UnicodeDecodeError):
        half.decode()
    file.write_bytes("\udc00 no pair\n".encode("utf-16-le", "surrogatepass") + LOG.encode("utf-16-le"))
    first, second, *_ = _lines(file)
    assert second.startswith(b"192.0.2.0 ")
    with pytest.raises(UnicodeDecodeError):
        first.decode()


@pytest.mark.parametrize(
    "content",
    [
        "h\u00e9\n" * 99,
        "\u4e16\u754c\n" * 99,
        "\0a" * 9 + "\n",
        "\0" * 15 + "a\n",
        "a\0b" * 99 + "\n",
        "a\n" + "\0" * 4000,
    ],
)
def test_utf_8_is_not_taken_for_utf_16(tmp_path: Path, content: str) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(content.encode())
    assert _lines(file) == _oracle(content.encode())


def test_a_damaged_file_has_the_lines_before_the_damage(tmp_path: Path) -> None:
    content = b"".join(b"line %d\r\n" % n for n in range(20_000))
    whole = gzip.compress(content)
    file = tmp_path / "a.gz"
    file.write_bytes(whole[: len(whole) // 2])
    read, table = _read(file)
    assert read.damage
    before = b"".join(table["value"].to_pylist())
    inflate = zlib.decompressobj(wbits=31)
    assert before == inflate.decompress(whole[: len(whole) // 2])
    assert read.lines == len(_oracle(before)) > 5000


def test_a_file_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"gone\.log"):
        list(read_lines(ReadFile(LandedFile(tmp_path / "gone.log", HOUR))))


#: Names of files, and as tables have them where that differs.
NAMES: dict[bytes, str | None] = {
    b"clicks[1].log": None,
    b"*.log": None,
    b"{a,b}.log": None,
    b"wh?t.log": None,
    b"clicks-2026-03-01T05:00:00Z.json": None,
    b"a%20b%5B.log": None,
    b" a  b .log": None,
    b"a\nb.log": None,
    b"a\\b.log": None,
    b"#a;b&c=d'\"$(e)~.log": None,
    "é ü 点.log".encode(): None,
    b"caf\xe9.log": r"caf\xe9.log",
    b"\xff\xfe": r"\xff\xfe",
    b"file:a.log": None,
}


@pytest.mark.parametrize("suffix", [b"", b".gz"])
def test_each_file_is_read_once_whatever_its_name(tmp_path: Path, suffix: bytes) -> None:
    folder = tmp_path / "log[s] *{a}?: %25"
    folder.mkdir()
    for number, name in enumerate(NAMES):
        content = b"".join(b"%d of %d\n" % (n, number) for n in range(number + 1))
        (folder / os.fsdecode(name + suffix)).write_bytes(gzip.compress(content) if suffix else content)
    for number, (name, printed) in enumerate(NAMES.items()):
        path = folder / os.fsdecode(name + suffix)
        assert _lines(path) == [b"%d of %d" % (n, number) for n in range(number + 1)]
        assert _read(path)[1]["file"][0].as_py() == (printed or name.decode()) + suffix.decode()


def test_of_a_line_longer_than_a_piece_length_and_first_bytes_are_kept(tmp_path: Path) -> None:
    long = b"first bytes " + b"x" * (40 * MIB)
    file = tmp_path / "a.log.gz"
    for end in (b"\n", b"\r\n"):
        file.write_bytes(gzip.compress(b"before\n" + long + end + b"after\n" + long + end, 1))
        read, table = _read(file)
        assert table["bytes"].to_pylist() == [6, len(long), 5, len(long)]
        values = table["value"].to_pylist()
        assert (values[0], values[2]) == (b"before\n", b"after\n")
        for value in (values[1], values[3]):
            assert long.startswith(value)
            assert 4 * 8192 <= len(value) < 16 * MIB
        assert read.damage is None


#: Reads a file in a process of its own and says its lines' lengths, and by how much memory has grown at most.
# Not getrusage: what it says includes what the process that started this one had used.
_MEASURE = """
import re, sys
from pathlib import Path
from include.hours import Hour
from spark_jobs.lines.read_lines import LandedFile, ReadFile, read_lines

def peak_kib():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

def lengths(path):
    return [n for t in read_lines(ReadFile(LandedFile(Path(path), Hour.of_number(0)))) for n in t["bytes"].to_pylist()]

lengths(sys.argv[1])
before = peak_kib()
bomb_lengths = lengths(sys.argv[2])
print(peak_kib() - before, *bomb_lengths)
"""


def _write_bomb(file: Path, mebibyte: bytes, after: bytes) -> None:
    """A gzip of 256 MiB, and of what comes after them."""
    compress = zlib.compressobj(1, zlib.DEFLATED, 31)
    with file.open("wb") as stream:
        for _ in range(256):
            stream.write(compress.compress(mebibyte))
        stream.write(compress.compress(after) + compress.flush())


@pytest.mark.parametrize(
    ("content", "after", "lengths"),
    [
        (b"\0", b"after a hole\n", [12]),
        (b"x", b"\nnormal\n", [256 * MIB, 6]),
        (b"x" * 8191 + b"\n", b"", [8191] * (32 << 10)),
    ],
    ids=["a hole and a line", "a line and a normal one", "many lines"],
)
def test_memory_does_not_grow_with_the_file(tmp_path: Path, content: bytes, after: bytes, lengths: list[int]) -> None:
    small, bomb = tmp_path / "small.gz", tmp_path / "bomb.gz"
    small.write_bytes(gzip.compress(b"a\n"))
    _write_bomb(bomb, content * (MIB // len(content)), after)
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(small), str(bomb)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    grown, *bomb_lengths = map(int, done.stdout.split())
    assert bomb_lengths == lengths
    assert grown < 200 << 10

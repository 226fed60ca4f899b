"""Landed files' bytes: all of a whole file, and of a damaged one all that comes before the damage."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import random
import zlib
from collections.abc import Callable

import pytest
from backports import zstd

from spark_jobs.lines.decompress import DamagedFileError, decompressed

SEED = int(os.environ.get("CLICKMILL_FAULT_SEED") or random.randrange(1 << 32))
TEXT = b"".join(b"line %d\n" % n for n in range(20_000))
MIB = 1 << 20


def _zstd(data: bytes) -> bytes:
    return zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1})


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".zst": _zstd,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


#: A name tells nothing of what is in a file.
NAMES = ["a", "a.log", "ACCESS.GZ", "access.log.gz.1", "part-0001", "a.xz", "a.gz"]


def _read(data: bytes, name: str) -> tuple[bytes, bool]:
    """What is given of a file, and whether it is damaged."""
    pieces: list[bytes] = []
    is_damaged = False
    try:
        pieces.extend(decompressed(io.BytesIO(data), f"a{name}" if name.startswith(".") else name))
    except DamagedFileError:
        is_damaged = True
    assert max(map(len, pieces), default=0) <= MIB
    return b"".join(pieces), is_damaged


def _by_zlib(data: bytes) -> tuple[bytes, bool]:
    """The same of a gzip file by zlib, which is fed byte by byte so that nothing it has found is lost."""
    content = bytearray()
    inflate = zlib.decompressobj(wbits=31)
    is_between = True
    for place in range(len(data)):
        byte = data[place : place + 1]
        if inflate.eof:
            if byte == b"\0":
                continue
            inflate = zlib.decompressobj(wbits=31)
        try:
            content += inflate.decompress(byte)
        except zlib.error:
            return bytes(content), True
        is_between = inflate.eof
    return bytes(content), not is_between


def _some_text(rng: random.Random) -> bytes:
    """Data of several kinds: noise, lines, and what compresses to nearly nothing."""
    match rng.randrange(4):
        case 0:
            return rng.randbytes(rng.randrange(3000))
        case 1:
            return rng.randbytes(3) * rng.randrange(30_000)
        case 2:
            return b"".join(b'{"id":%d,"to":"%d"}\n' % (n, rng.randrange(99)) for n in range(rng.randrange(900)))
        case _:
            return TEXT[: rng.randrange(len(TEXT))]


def _some_gzip(rng: random.Random) -> bytes:
    members = [zlib.compress(_some_text(rng), rng.randrange(10), 31) for _ in range(rng.choice([1, 1, 2, 3]))]
    return (b"\0" * rng.choice([0, 0, 7])).join(members)


@pytest.mark.parametrize("suffix", COMPRESS)
def test_whole_files_are_read_whole(suffix: str) -> None:
    compress = COMPRESS[suffix]
    assert _read(compress(TEXT), suffix) == (TEXT, False)
    assert _read(compress(TEXT) + compress(b"more\n") + compress(b""), suffix) == (TEXT + b"more\n", False)
    assert _read(compress(b"") + compress(b"x"), suffix) == (b"x", False)
    assert _read(compress(b""), suffix) == (b"", False)
    assert _read(b"", suffix) == (b"", False), "an hour's log may be empty"


@pytest.mark.parametrize("name", NAMES)
def test_content_says_how_a_file_is_compressed_and_not_its_name(name: str) -> None:
    skipped = b"\x5a\x2a\x4d\x18\x03\0\0\0abc"  # a frame that pzstd writes first
    for compress in [*COMPRESS.values(), lambda text: skipped + _zstd(text)]:
        for text in (TEXT, b""):
            assert _read(compress(text), name) == (text, False)
        content, is_damaged = _read(compress(TEXT)[:-9], name)
        assert is_damaged
        assert TEXT.startswith(content)
    for text in (TEXT, b"\n", b"B", b"BZh is no bzip2\n", b"(", b"7z", b"caf\xe9\n", b"\xef\xbb\xbf{}\n", b""):
        assert _read(text, name) == (text, False)


@pytest.mark.parametrize("name", ["a", "a.log", "gz", "a.gz.log"])
def test_what_begins_as_no_compressed_file_is_plain_whatever_it_holds(name: str) -> None:
    content = b"\x1f" + gzip.compress(TEXT) + b"\0" * (2 * MIB)
    pieces = list(decompressed(io.BytesIO(content), name))
    assert b"".join(pieces) == content
    assert max(map(len, pieces)) <= MIB


@pytest.mark.parametrize("length", [1, 511, 300 << 10, MIB])
def test_zeros_after_a_gzip_member_hide_no_member_behind_them(length: int) -> None:
    # Tapes and some archivers fill up blocks with zeros.
    assert _read(gzip.compress(b"one\n") + b"\0" * length, ".gz") == (b"one\n", False)
    both = gzip.compress(b"one\n") + b"\0" * length + gzip.compress(b"two\n")
    assert _read(both, ".gz") == (b"one\ntwo\n", False)


@pytest.mark.parametrize("suffix", COMPRESS)
def test_files_that_break_off_are_damaged_and_given_up_to_there(suffix: str) -> None:
    whole = COMPRESS[suffix](TEXT)
    for length in (1, 3, 10, len(whole) // 2, len(whole) - 1):
        content, is_damaged = _read(whole[:length], suffix)
        assert is_damaged, length
        assert TEXT.startswith(content)
    content, is_damaged = _read(whole + whole[: len(whole) // 2], suffix)
    assert is_damaged
    assert (TEXT + TEXT).startswith(content)
    assert content.startswith(TEXT)


@pytest.mark.parametrize("suffix", COMPRESS)
def test_what_is_named_as_compressed_and_is_neither_that_nor_text_is_damaged(suffix: str) -> None:
    whole = COMPRESS[suffix](TEXT)
    for data in (b"\0" * 4096, whole[9:], b"PK\3\4" + whole):
        assert _read(data, suffix) == (b"", True)
        assert _read(data, "a.log") == (data, False)
    assert _read(whole + b"garbage", suffix) == (TEXT, True)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", COMPRESS)
def test_flipped_bits_are_damage(suffix: str) -> None:
    print(f"CLICKMILL_FAULT_SEED={SEED}")
    rng = random.Random(SEED)
    whole = COMPRESS[suffix](TEXT)
    for _ in range(12):
        flipped = bytearray(whole)
        # Behind the header: some of its bits, such as gzip's time, say nothing about the content.
        flipped[rng.randrange(20, len(whole))] ^= 1 << rng.randrange(8)
        assert _read(bytes(flipped), suffix)[1]


def test_gzip_that_breaks_off_gives_each_byte_that_zlib_finds() -> None:
    print(f"CLICKMILL_FAULT_SEED={SEED}")
    rng = random.Random(SEED)
    for _ in range(250):
        whole = _some_gzip(rng)
        data = whole[: rng.randrange(len(whole))]
        assert _read(data, ".gz") == _by_zlib(data), data.hex()


def test_gzip_with_other_bytes_in_it_gives_each_byte_that_zlib_finds() -> None:
    print(f"CLICKMILL_FAULT_SEED={SEED}")
    rng = random.Random(SEED)
    for _ in range(250):
        data = bytearray(_some_gzip(rng))
        for _ in range(rng.choice([1, 1, 1, 5])):
            # Behind the header, of which zlib looks at more than is needed.
            data[rng.randrange(10, len(data))] = rng.randrange(256)
        assert _read(bytes(data), ".gz") == _by_zlib(bytes(data)), data.hex()


def test_a_wrong_checksum_at_the_end_costs_no_byte() -> None:
    whole = bytearray(gzip.compress(TEXT))
    whole[-8] ^= 1
    assert _read(bytes(whole), ".gz") == (TEXT, True)


@pytest.mark.parametrize("suffix", COMPRESS)
def test_bombs_come_in_small_pieces(suffix: str) -> None:
    zeros = bytes(20 * MIB)
    assert _read(COMPRESS[suffix](zeros), suffix) == (zeros, False)
    content, is_damaged = _read(COMPRESS[suffix](zeros)[:-6], suffix)
    assert is_damaged
    assert zeros.startswith(content)


class _FailingDisk(io.BytesIO):
    """A file of which so many reads succeed, those after going back counted on."""

    def __init__(self, content: bytes, reads: int) -> None:
        super().__init__(content)
        self._reads = reads

    def read(self, size: int | None = -1, /) -> bytes:
        if self._reads == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._reads -= 1
        return super().read(size)


@pytest.mark.parametrize("reads", [0, 1])
@pytest.mark.parametrize("suffix", ["", *COMPRESS])
def test_errors_of_the_disk_are_passed_on(suffix: str, reads: int) -> None:
    noise = random.Random(2).randbytes(2 * MIB)
    content = COMPRESS[suffix](noise[: MIB // 2]) if suffix else noise
    with pytest.raises(OSError, match="Input/output error") as raised:
        list(decompressed(_FailingDisk(content, reads), f"a{suffix}"))
    assert raised.value.errno == errno.EIO


@pytest.mark.parametrize("suffix", COMPRESS)
def test_errors_of_the_disk_are_passed_on_when_a_damaged_file_is_read_again(suffix: str) -> None:
    damaged = COMPRESS[suffix](TEXT)[:-5]
    # It is read up to its end, which is two reads, and once more from the beginning.
    with pytest.raises(OSError, match="Input/output error"):
        list(decompressed(_FailingDisk(damaged, 2), f"a{suffix}"))

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest
import zstandard

from include.damage import find_damaged_files

TEXT = b"".join(b"line %d\n" % n for n in range(20_000))
COMPRESS = {".gz": gzip.compress, ".zst": zstandard.ZstdCompressor(write_checksum=True).compress}


def _is_damaged(file: Path, data: bytes) -> bool:
    file.write_bytes(data)
    return find_damaged_files([file]) == [file]


@pytest.mark.parametrize("suffix", COMPRESS)
def test_whole_files_are_not_damaged(tmp_path: Path, suffix: str) -> None:
    whole = COMPRESS[suffix](TEXT)
    file = tmp_path / f"a{suffix}"
    assert not _is_damaged(file, whole)
    assert not _is_damaged(file, whole + COMPRESS[suffix](b"more\n") + COMPRESS[suffix](b"")), "several frames"
    assert not _is_damaged(file, COMPRESS[suffix](b""))
    assert not _is_damaged(file, b""), "no bytes at all: Spark passes over such a file"


@pytest.mark.parametrize("suffix", COMPRESS)
def test_files_that_break_off_are_damaged(tmp_path: Path, suffix: str) -> None:
    whole = COMPRESS[suffix](TEXT)
    file = tmp_path / f"a{suffix}"
    for length in (1, 3, 10, len(whole) // 2, len(whole) - 1):
        assert _is_damaged(file, whole[:length]), length
    assert _is_damaged(file, whole + whole[: len(whole) // 2]), "in its second frame"
    assert _is_damaged(file, TEXT), "not compressed at all"


@pytest.mark.parametrize("suffix", COMPRESS)
def test_flipped_bits_are_damage(tmp_path: Path, suffix: str) -> None:
    whole = COMPRESS[suffix](TEXT)
    rng = random.Random(1)
    file = tmp_path / f"a{suffix}"
    for _ in range(20):
        flipped = bytearray(whole)
        # Behind the header: some of its bits, such as gzip's time, say nothing about the content.
        flipped[rng.randrange(20, len(whole))] ^= 1 << rng.randrange(8)
        assert _is_damaged(file, bytes(flipped))


def test_large_zstd_files_are_read_in_pieces(tmp_path: Path) -> None:
    noise = random.Random(2).randbytes(3 << 20)
    whole = zstandard.compress(noise) + zstandard.compress(TEXT)
    assert not _is_damaged(tmp_path / "a.zst", whole)
    assert _is_damaged(tmp_path / "a.zst", whole[:-3])


def test_only_the_damaged_of_several_are_named(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.gz", "b.gz", "c.log")]
    files[0].write_bytes(gzip.compress(TEXT))
    files[1].write_bytes(gzip.compress(TEXT)[:-4])
    files[2].write_bytes(b"\x1f\x8b whatever a plain file holds")
    assert find_damaged_files(files) == [files[1]]

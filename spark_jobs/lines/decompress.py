"""A landed file's bytes, decompressed piece by piece, so that no file needs more memory than a piece."""

from __future__ import annotations

import bz2
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import BinaryIO, Protocol, cast

from backports import zstd
from isal import igzip_lib, isal_zlib

_READ_BYTES = 1 << 18
_PIECE_BYTES = 1 << 20
#: So much of a damaged gzip file is inflated in one step: at most a piece comes of it.
_EXACT_BYTES = 1 << 10


class DamagedFileError(Exception):
    """A compressed file that breaks off or does not go on as its format says."""


class _Decompressor(Protocol):
    """What the decompressors of gzip, zstd, bzip2 and xz have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


_Maker = Callable[[], _Decompressor]
_DECOMPRESSORS: dict[str, _Maker] = {
    ".gz": lambda: igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP),
    ".zst": zstd.ZstdDecompressor,
    ".bz2": bz2.BZ2Decompressor,
    ".xz": lzma.LZMADecompressor,
}
#: How the names of compressed files usually end.
SUFFIXES = tuple(_DECOMPRESSORS)
#: How their content begins: RFC 1952, RFC 8878 (a skippable frame may come first), bzip2 and xz by their file formats.
_BEGINNINGS = {
    ".gz": re.compile(rb"\x1f\x8b\x08"),
    ".zst": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
    ".bz2": re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"),
    ".xz": re.compile(rb"\xfd7zXZ\0"),
}
#: The same in short: a file may break off within it.
_MAGIC = {".gz": b"\x1f\x8b\x08", ".zst": b"\x28\xb5\x2f\xfd", ".bz2": b"BZh", ".xz": b"\xfd7zXZ\0"}
_SHORT_BYTES = 16
_NO_TEXT = re.compile(rb"[^\t\n\v\f\r\x1b\x20-\x7e\x80-\xff]")
# bzip2 reports bad data as an OSError; those of the disk come from reading, which is not inside the try below.
_BAD_DATA = (
    zlib.error,
    cast(type[Exception], isal_zlib.error),
    zstd.ZstdError,
    lzma.LZMAError,
    OSError,
    EOFError,
    ValueError,
)


def compression_of(beginning: bytes) -> str | None:
    """How a file is compressed whose content begins so: one of ``SUFFIXES``; none for a plain one."""
    return next((suffix for suffix, pattern in _BEGINNINGS.items() if pattern.match(beginning)), None)


def decompressed(file: BinaryIO, name: str) -> Iterator[bytes]:
    """The content in pieces of at most 1 MiB, decompressed by gzip, zstd, bzip2 or xz if it begins as theirs does.

    The name does not matter, but for a file that is named as one of them and is neither that nor text.

    Raises:
        DamagedFileError: after the last byte that could be had, if the compressed data breaks off or is not sound.
        OSError: if the file cannot be read.
    """
    first = file.read(_READ_BYTES)
    suffix = compression_of(first)
    if suffix is None:
        _require_plain(first, PurePath(name).suffix.lower())
        piece = first
        while piece:
            yield piece
            piece = file.read(_PIECE_BYTES)
        return
    total = 0
    try:
        for piece in _pieces(first, file, _DECOMPRESSORS[suffix]):
            total += len(piece)
            yield piece
    except DamagedFileError:
        # The call that met the damage kept what it had decompressed before: again, more slowly.
        file.seek(0)
        again = (
            _exactly_inflated(file)
            if suffix == ".gz"
            else _pieces(file.read(_READ_BYTES), file, _DECOMPRESSORS[suffix], total)
        )
        yield _rest_of(again, total)
        raise


def _require_plain(first: bytes, suffix: str) -> None:
    """Raise for what is named as compressed and is neither that nor text: its beginning, or all but that, is lost."""
    if not first or suffix not in _MAGIC:
        return
    magic = _MAGIC[suffix]
    is_cut_off = len(first) < _SHORT_BYTES and (magic.startswith(first) or first.startswith(magic))
    if is_cut_off or _NO_TEXT.search(first[:4096]):
        raise DamagedFileError(f"it is named {suffix}, and what it begins with is neither that nor text")


def _pieces(data: bytes, file: BinaryIO, make: _Maker, one_by_one_from: int | None = None) -> Iterator[bytes]:
    """The decompressed pieces of this data and the file's; from that byte on, if there is one, each byte is a piece."""
    decompressor, total = make(), 0
    while True:
        size = _PIECE_BYTES
        if one_by_one_from is not None:
            size = max(1, min(size, one_by_one_from - total))
        try:
            piece = decompressor.decompress(data, size)
        except _BAD_DATA as error:
            raise DamagedFileError(str(error)) from error
        total += len(piece)
        if piece:
            yield piece
        data = b""
        if decompressor.eof:
            data = _next_member(decompressor.unused_data, file)
            if not data:
                return
            decompressor = make()
        elif decompressor.needs_input:
            data = file.read(_READ_BYTES)
            if not data:
                raise DamagedFileError("the compressed data breaks off")


def _next_member(data: bytes, file: BinaryIO) -> bytes:
    """What comes after the end of a member, without the zeros with which files are filled up; empty at the end."""
    while not (data := data.lstrip(b"\0")):
        data = file.read(_READ_BYTES)
        if not data:
            break
    return data


def _exactly_inflated(file: BinaryIO) -> Iterator[bytes]:
    """A damaged gzip file by zlib, which can be asked for each byte that the data still holds."""
    data = _next_member(b"", file)
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
    while data:
        chunk, data = data[:_EXACT_BYTES], data[_EXACT_BYTES:]
        before = inflate.copy()
        try:
            yield inflate.decompress(chunk)
        except zlib.error:
            for byte in chunk:
                yield before.decompress(bytes([byte]))
            raise
        if inflate.eof:
            data = _next_member(inflate.unused_data + data, file)
            inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
        data = data or file.read(_READ_BYTES)


def _rest_of(pieces: Iterator[bytes], total: int) -> bytes:
    """What pieces that end with damage have after ``total`` bytes, at most a piece."""
    rest, position = bytearray(), 0
    try:
        for piece in pieces:
            rest += piece[max(0, total - position) :]
            position += len(piece)
    except (DamagedFileError, zlib.error):
        pass
    return bytes(rest)

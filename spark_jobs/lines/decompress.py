"""A landed file's bytes, decompressed piece by piece, so that no file needs more memory than a piece."""

from __future__ import annotations

import bz2
import lzma
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
#: How the names of compressed files end; all others are plain.
SUFFIXES = tuple(_DECOMPRESSORS)
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


def decompressed(file: BinaryIO, name: str) -> Iterator[bytes]:
    """The content in pieces of at most 1 MiB, decompressed as the name's ending says: .gz, .zst, .bz2, .xz, or plain.

    Raises:
        DamagedFileError: after the last byte that could be had, if the compressed data breaks off or is not sound.
        OSError: if the file cannot be read.
    """
    suffix = PurePath(name).suffix
    if suffix not in _DECOMPRESSORS:
        while piece := file.read(_PIECE_BYTES):
            yield piece
        return
    given = 0
    try:
        for piece in _pieces(file, _DECOMPRESSORS[suffix]):
            given += len(piece)
            yield piece
    except DamagedFileError:
        # The call that met the damage kept what it had decompressed before: again, more slowly.
        file.seek(0)
        again = _exactly_inflated(file) if suffix == ".gz" else _pieces(file, _DECOMPRESSORS[suffix], given)
        yield _rest_of(again, given)
        raise


def _pieces(file: BinaryIO, make: _Maker, one_by_one_from: int | None = None) -> Iterator[bytes]:
    """The decompressed pieces; from that byte on, if there is one, each byte is a piece."""
    data = file.read(_READ_BYTES)
    if not data:  # an hour's log may be empty
        return
    decompressor, given = make(), 0
    while True:
        size = _PIECE_BYTES
        if one_by_one_from is not None:
            size = max(1, min(size, one_by_one_from - given))
        try:
            piece = decompressor.decompress(data, size)
        except _BAD_DATA as error:
            raise DamagedFileError(str(error)) from error
        given += len(piece)
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


def _rest_of(pieces: Iterator[bytes], given: int) -> bytes:
    """What pieces that end with damage have after as many bytes as were given, at most a piece."""
    rest, position = bytearray(), 0
    try:
        for piece in pieces:
            rest += piece[max(0, given - position) :]
            position += len(piece)
    except (DamagedFileError, zlib.error):
        pass
    return bytes(rest)

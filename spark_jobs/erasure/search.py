"""Whether any file has a word still: its bytes, what is compressed in it, and the columns of Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
from pyarrow.parquet import ParquetFile

from include.storage import entries, is_on_disk
from include.utf_16 import encoding_of
from spark_jobs.erasure.matches import Words, joined
from spark_jobs.lines.decompress import DamagedFileError, compression_of, decompressed
from spark_jobs.lines.plain_text import plain_text

_PIECE_BYTES = 1 << 22
#: A word may lie across two pieces; none is longer.
_OVERLAP = 1 << 13
_PARQUET = b"PAR1"
#: By so much of a file it is known how it is compressed and encoded.
_BEGINNING_BYTES = 1 << 12


@dataclass
class Searched:
    """How many files and bytes were looked at, which have a word still, and which could not be read."""

    files: int = 0
    bytes: int = 0
    matches: list[Path] = field(default_factory=list)
    unread: list[Path] = field(default_factory=list)


def search(folders: Iterable[Path], words: Words) -> Searched:
    """Look into every file below these folders."""
    searched, seen = Searched(), set()
    for path, size in (file for folder in folders for file in _files(folder)):
        if path in seen:
            continue
        seen.add(path)
        try:
            is_in = any(map(words.is_in, _contents(path)))
        except FileNotFoundError:  # gone meanwhile
            continue
        except (OSError, pa.ArrowException):
            searched.unread.append(path)
            continue
        searched.files, searched.bytes = searched.files + 1, searched.bytes + size
        if is_in:
            searched.matches.append(path)
    return searched


def texts_of(column: pa.Array) -> Iterator[pa.Array]:
    """The texts, and bytes, in a column, however they are nested."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        yield from texts_of(column.dictionary)
    elif pa.types.is_map(kind):
        yield from texts_of(column.keys)
        yield from texts_of(column.items)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from texts_of(column.flatten())
    elif pa.types.is_struct(kind):
        for part in column.flatten():
            yield from texts_of(part)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        yield column


def _files(folder: Path) -> Iterator[tuple[Path, int]]:
    if is_on_disk(folder) and folder.is_file():
        yield folder, folder.stat().st_size
    for entry in entries(folder):
        if entry.is_file:
            yield entry.path, entry.size
        elif not is_on_disk(entry.path) or (entry.path.is_dir() and not entry.path.is_symlink()):
            yield from _files(entry.path)


def _contents(path: Path) -> Iterator[bytes]:
    """A file's name and bytes as they are, then what they mean."""
    yield path.name.encode("utf-8", "surrogateescape")
    with path.open("rb") as stream:
        first = stream.read(_BEGINNING_BYTES)
        stream.seek(0)
        yield from _overlapping(iter(lambda: stream.read(_PIECE_BYTES), b""))
        stream.seek(0)
        if first.startswith(_PARQUET):
            for batch in ParquetFile(stream).iter_batches():
                for column in batch.columns:
                    yield from map(joined, texts_of(column))
        elif compression_of(first) or encoding_of(first.lstrip(b"\0")):
            yield from _overlapping(plain_text(_decompressed(stream, path)))


def _decompressed(stream: BinaryIO, path: Path) -> Iterator[bytes]:
    try:
        yield from decompressed(stream, path.name)
    except DamagedFileError:
        return


def _overlapping(pieces: Iterator[bytes]) -> Iterator[bytes]:
    before = b""
    for piece in pieces:
        yield before + piece
        before = (before + piece)[-_OVERLAP:]

"""Landed files: those that have lines to be erased, and how they are written again without these."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
import pyarrow as pa
from backports import zstd

from include.landing import hour_of_folder, is_data
from include.sources import Source
from include.storage import find, is_on_disk, write_whole
from spark_jobs.erasure.matches import Matcher
from spark_jobs.lines.columns import as_numpy, in_pieces
from spark_jobs.lines.cut_lines import PIECE_BYTES, cut_at_lines
from spark_jobs.lines.decompress import DamagedFileError, decompressed
from spark_jobs.lines.headers import with_headers
from spark_jobs.lines.read_lines import LINES, LandedFile, ReadFile, read_lines

_COMPRESSORS: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda file: gzip.GzipFile("", "wb", 6, file, mtime=0),
    ".zst": lambda file: zstd.ZstdFile(file, "wb"),
    ".bz2": lambda file: bz2.BZ2File(file, "wb"),
    ".xz": lambda file: lzma.LZMAFile(file, "wb"),
}


def landed_files(landing: Path, source: str) -> Iterator[LandedFile]:
    """The data files of all log hours of a source."""
    for entry in find(landing / source, "log_date=*/log_hour=*/*"):
        hour = hour_of_folder(entry.path.parent)
        if hour and entry.is_file and is_data(entry):
            yield LandedFile(entry.path, hour)


def pieces_of(file: LandedFile, source: Source) -> Iterable[pa.Table]:
    """The lines of a file, as ``LINES``, with their headers; of a damaged one those before the damage.

    Raises OSError as ``read_lines``.
    """
    tables = (
        table.append_column("row_id", pa.array(np.zeros(len(table), np.int64))).select(LINES.names)
        for table in read_lines(ReadFile(file))
    )
    return with_headers(in_pieces(tables, PIECE_BYTES), source)


def matching_lines(file: LandedFile, matcher: Matcher) -> tuple[set[int], int]:
    """The numbers, from 1, of the lines that are to go; and how many lines the file has.

    Raises:
        OSError: if the file cannot be read; of a damaged one what comes before the damage is.
    """
    numbers: set[int] = set()
    count = 0
    for piece in pieces_of(file, matcher.source):
        numbers.update(as_numpy(piece["line"])[matcher.of_lines(piece)].tolist())
        count += len(piece)
    return numbers, count


def write_without(file: LandedFile, lines: set[int]) -> None:
    """Replace the file by one without these lines, with the others as they are read, and the same date.

    What is behind the damage of a damaged file cannot be read, and goes too: the file is whole then.
    """
    path = file.path
    date = path.stat() if is_on_disk(path) else None
    write_whole(path, lambda to: _copy(path, lines, to))
    if date is not None:
        # By it streams know files, and the hour's run knows what has landed since.
        os.utime(path, ns=(date.st_atime_ns, date.st_mtime_ns))


def _copy(path: Path, lines: set[int], to: BinaryIO) -> None:
    compressor = _COMPRESSORS.get(path.suffix)
    target: IO[bytes] = compressor(to) if compressor else to
    number = 1
    with path.open("rb") as stream, suppress(DamagedFileError):
        for piece, _ in cut_at_lines(decompressed(stream, path.name)):
            for part in BytesIO(piece):
                if number not in lines:
                    target.write(part)
                number += part.endswith(b"\n")
    if compressor:
        target.close()

"""Which compressed files break off or are otherwise damaged."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable
from pathlib import Path

import zstandard

_CHUNK = 1 << 20


def find_damaged_files(files: Iterable[Path]) -> list[Path]:
    """The ``.gz`` and ``.zst`` files that cannot be decompressed to their end; reads them all."""
    return [file for file in files if _is_damaged(file)]


def _is_damaged(file: Path) -> bool:
    try:
        if not file.stat().st_size:  # Spark passes over these; an hour's log may be empty
            return False
        match file.suffix:
            case ".gz":
                with gzip.open(file) as stream:
                    while stream.read(_CHUNK):
                        pass
            case ".zst":
                _read_zstd(file)
    except (EOFError, OSError, zlib.error, zstandard.ZstdError):
        return True
    return False


def _read_zstd(file: Path) -> None:
    """Raise if a frame is damaged or incomplete."""
    decompressor = zstandard.ZstdDecompressor().decompressobj()
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            while chunk:
                decompressor.decompress(chunk)
                if not decompressor.eof:
                    break
                chunk = decompressor.unused_data
                decompressor = zstandard.ZstdDecompressor().decompressobj()
                if not chunk:
                    rest = stream.read(_CHUNK)
                    if not rest:
                        return
                    chunk = rest
    raise EOFError(f"{file} ends inside a frame")

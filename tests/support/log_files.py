"""Log files as they land."""

from __future__ import annotations

import gzip
from pathlib import Path

from backports import zstd


def content_of(file: Path) -> bytes:
    """What a plain, gzip or zstd file has."""
    content = file.read_bytes()
    if file.suffix == ".gz":
        return gzip.decompress(content)
    return zstd.decompress(content) if file.suffix == ".zst" else content

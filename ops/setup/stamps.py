"""What a finished step of set-up leaves: the sums of the lock files that it was made from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from include.storage import write_whole

STAMP = "clickmill-setup.json"


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def read_stamp(stamp: Path) -> dict[str, str]:
    """Return the sums a finished step left, {} when there are none or they cannot be read."""
    try:
        content = json.loads(stamp.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def write_stamp(stamp: Path, sums: Mapping[str, str]) -> None:
    """Leave the sums of a finished step; whole or not at all."""
    write_whole(stamp, json.dumps(dict(sums), indent=1, sort_keys=True).encode() + b"\n")

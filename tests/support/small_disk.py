"""A disk of a test's own, that can be full."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, megabytes: int = 8) -> Iterator[None]:
    """A disk of so many MB in the folder's place; the test is skipped where none can be mounted."""
    folder.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"no disk of a test's own can be mounted here: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        # Lazily: the Spark server may still have a file open.
        subprocess.run(["umount", "--lazy", folder], check=True)


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Leave no space on the folder's disk."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as stream:
        while stream.write(b"\0" * min(4096, _free_bytes(folder))):
            pass
    try:
        yield
    finally:
        ballast.unlink()

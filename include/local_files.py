"""The files of a Delta table on this machine, for delta-rs to read."""

from __future__ import annotations

from pathlib import Path

from pyarrow.fs import FileSystem, LocalFileSystem, SubTreeFileSystem


def local_files(table: Path | str) -> FileSystem:
    """The ``filesystem`` for reading a table of this folder as Arrow.

    Without it Arrow's threads read through Python, and one that still does when the interpreter ends aborts the
    process: "terminate called without an active exception", exit code 134, after all work was done well.
    """
    return SubTreeFileSystem(str(table), LocalFileSystem())

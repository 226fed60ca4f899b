"""The log files that are given to landing: those named, and what is in folders, as people have them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from include.errors import UsageError
from include.texts import as_printable
from spark_jobs.landing.file_kinds import no_file
from spark_jobs.lines.decompress import SUFFIXES


@dataclass(frozen=True)
class GivenFile:
    """A file; ``is_named`` if it was given itself, and not a folder that it is in.

    ``same_as`` is another name of it that comes before, by a link. ``left_out`` is why it cannot be read.
    """

    path: Path
    is_named: bool
    same_as: Path | None = None
    left_out: str | None = None


def given_files(paths: Iterable[Path]) -> list[GivenFile]:
    """The files, and those in the folders; not what has a name that begins with ``.`` or ``_`` there.

    Links are followed; a folder is read once, however it is reached.

    Raises:
        UsageError: if there is nothing in a folder.
    """
    files: list[GivenFile] = []
    for path in paths:
        if not path.is_dir():
            files.append(GivenFile(path, is_named=True))
            continue
        here = list(_in_folder(path, {}))
        if not here:
            raise UsageError(f"no files in {printed(path)}; expected log files, plain, {', '.join(SUFFIXES)}")
        files += here
    return files


def printed(path: Path) -> str:
    """A path in a line of text: no name of a file may end the line or command the terminal."""
    return as_printable(str(path))


def _in_folder(folder: Path, seen: dict[tuple[int, int], Path]) -> Iterator[GivenFile]:
    """``seen`` has files and folders by device and inode."""
    try:
        state = folder.stat()
        # Links last: what is there itself is named so.
        entries = sorted(os.scandir(folder), key=lambda entry: (entry.is_symlink(), entry.path))
    except OSError as error:
        yield GivenFile(folder, is_named=False, left_out=_reason(error))
        return
    seen[state.st_dev, state.st_ino] = folder
    for entry in entries:
        path = Path(entry.path)
        if entry.name[0] in "._":
            continue
        try:
            state = path.stat()
        except OSError as error:
            why = f"a link to {printed(Path(os.readlink(path)))}: " if entry.is_symlink() else ""
            yield GivenFile(path, is_named=False, left_out=why + _reason(error))
            continue
        before = seen.setdefault((state.st_dev, state.st_ino), path)
        if before != path:
            yield GivenFile(path, is_named=False, same_as=before)
        elif stat.S_ISDIR(state.st_mode):
            yield from _in_folder(path, seen)
        else:
            kind = no_file(state.st_mode)
            yield GivenFile(path, is_named=False, left_out=kind and f"it is {kind}")


def _reason(error: OSError) -> str:
    return error.strerror or str(error)

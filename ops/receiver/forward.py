"""From the receiver's disk into the landing zone of an object store, which cannot add to a file."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from include.landing import SUCCESS
from include.storage import touch, write_once


def forward(folder: Path, landing: Path, source: str) -> None:
    """Move the complete files, and close the hours that are closed here, each after all of its files.

    Ended anywhere and called again it goes on: a file is moved whole, and again by the same name. One at a time.

    Raises:
        OSError: if the store, or the disk, refuses; or another receiver has such a file there, which stays.
    """
    for of_hour in sorted((folder / source).glob("log_date=*/log_hour=*")):
        # Looked at first: no file comes after it.
        is_closed = (of_hour / SUCCESS).exists()
        landed = landing / of_hour.relative_to(folder)
        for file in sorted(of_hour.glob("[0-9]*.log")):
            _move(file, landed / file.name)
        if is_closed:
            touch(landed / SUCCESS)
            (of_hour / SUCCESS).unlink()
            of_hour.rmdir()
            with suppress(OSError):  # the day goes on
                of_hour.parent.rmdir()


def _move(file: Path, landed: Path) -> None:
    lines = file.read_bytes()
    if not write_once(landed, lines) and landed.read_bytes() != lines:
        raise FileExistsError(
            f"{landed} is there with other lines: another receiver has the source and the port; {file} is kept: give "
            "this receiver's ports other numbers in sources.toml, and the file one of those, then start it again"
        )
    file.unlink()

"""Received lines as files, on a disk: what is stored has survived a power cut, and has a sequence id.

The folder is the landing zone, or one from which files are forwarded into that of an object store. A file is
``<port>-<sequence id of its first line>.log`` in the folder of the log hour in which its lines arrived, one raw line a
row. Until it is complete it has a hidden name, which nobody reads.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from include.hours import ONE_HOUR, Hour
from include.landing import SUCCESS, hour_folder, hour_of_folder

#: The end of a hidden name.
UNFINISHED = ".unfinished"
_NAME = re.compile(r"^\.?(?P<port>\d+)-(?P<first>\d+)\.log(?:\.unfinished)?$")
_CHUNK = 1 << 20


class LineSplitter:
    """Bytes as lines, of which no more than ``longest`` bytes each are kept, however long they are."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._part = bytearray()
        self._is_inside = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that these bytes complete, each with its end."""
        *whole, part = chunk.split(b"\n")
        lines = []
        for piece in whole:
            self._add(piece)
            lines.append(bytes(self._part) + b"\n")
            self._part.clear()
            self._is_inside = False
        self._add(part)
        return lines

    def rest(self) -> list[bytes]:
        """What came after the last line end, as a line; none if nothing did."""
        return [bytes(self._part) + b"\n"] if self._is_inside else []

    @property
    def unfinished_bytes(self) -> int:
        """How many bytes are kept of a line whose end has not come."""
        return len(self._part)

    def _add(self, piece: bytes) -> None:
        self._part += piece[: max(0, self._longest - len(self._part))]
        self._is_inside = self._is_inside or bool(piece)


@dataclass
class _OpenFile:
    """The file that is written: of its bytes the first ``stored`` are on the disk for good."""

    path: Path
    descriptor: int
    hour: Hour
    first: int
    began_at: datetime
    stored: int = 0
    lines: int = 0
    is_broken: bool = False

    @property
    def final(self) -> Path:
        return self.path.with_name(self.path.name.removeprefix(".").removesuffix(UNFINISHED))


@dataclass
class Spool:
    """The lines of one port of a source, stored in the order in which they come; for one thread at a time.

    ``clock`` and ``sync`` (make a descriptor's bytes durable) are the system's, unless a test has others.
    """

    folder: Path
    source: str
    port: int
    roll_seconds: float
    roll_bytes: int
    clock: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    sync: Callable[[int], None] = os.fsync
    #: The sequence id that the next line gets.
    next_id: int = 1
    _file: _OpenFile | None = None
    _hour: Hour | None = None

    def recover(self) -> list[Path]:
        """Go on where an earlier receiver was, whatever ended it; returns the files that it left unfinished.

        Such a file is completed. A last line without an end was not acknowledged, and is cut off.

        Raises:
            OSError: if that cannot be read or written.
        """
        left = []
        with suppress(FileNotFoundError):
            self.next_id = int(self._next_id_file.read_text(encoding="ascii"))
        of_source = self.folder / self.source
        for file in sorted(of_source.glob(f"log_date=*/log_hour=*/.{self.port}-*.log{UNFINISHED}")):
            self._complete(file)
            left.append(file)
        last = max(of_source.glob(f"log_date=*/log_hour=*/{self.port}-*.log"), key=_first_id, default=None)
        if last is not None:
            self.next_id = max(self.next_id, _first_id(last) + _line_count(last))
        return left

    def store(self, lines: Sequence[bytes]) -> int:
        """Make the lines, each with its end, durable; returns the sequence id of the last one.

        Raises:
            OSError: none of them is stored, and it can be tried again.
        """
        now = self.clock()
        hour = self._hour_of(now)
        if self._file is not None and (self._file.is_broken or self._file.hour != hour):
            self.roll()
        file = self._file or self._open(hour, now)
        content = b"".join(lines)
        try:
            _write(file.descriptor, content)
            self.sync(file.descriptor)
        except BaseException:
            # What a failed sync has left on the disk, no second sync can tell: the file ends before it.
            file.is_broken = True
            raise
        file.stored += len(content)
        file.lines += len(lines)
        self.next_id += len(lines)
        return self.next_id - 1

    def roll_if_due(self) -> None:
        """Complete the file if it is old or large enough.

        Raises:
            OSError: as above.
        """
        if self._file is not None:
            age = abs((self.clock() - self._file.began_at).total_seconds())
            is_full = age >= self.roll_seconds or self._file.stored >= self.roll_bytes
            if is_full or self._file.is_broken:
                self.roll()

    def roll(self) -> None:
        """Complete the file, if there is one: give it its name.

        Raises:
            OSError: as above.
        """
        file = self._file
        if file is None:
            return
        if file.is_broken:
            os.ftruncate(file.descriptor, file.stored)
            self.sync(file.descriptor)
        if file.lines:
            # Before the name: a file that has it may be taken away, and its sequence ids must not come again.
            self._keep_next_id()
            if file.path.exists():  # else only the rest of this has to be tried again
                # Given up before it has its name: whatever is refused from here on, nothing more is added to it.
                file.is_broken = True
                file.path.rename(file.final)
        else:
            file.path.unlink(missing_ok=True)
        self._sync_folder(file.path.parent)
        self._file = None
        os.close(file.descriptor)

    def begin_hour(self, hour: Hour) -> None:
        """Complete the file of an hour before; from now on no line is stored in one.

        Raises:
            OSError: as above.
        """
        self._hour = max(hour, self._hour or hour)
        if self._file is not None and self._file.hour < hour:
            self.roll()

    def _hour_of(self, now: datetime) -> Hour:
        """The log hour; a clock that is set back a little does not lead back into an hour that is over."""
        hour = Hour.containing(now)
        if self._hour is None or not hour < self._hour <= Hour(hour.start + ONE_HOUR):
            self._hour = hour
        return self._hour

    def _open(self, hour: Hour, now: datetime) -> _OpenFile:
        folder = hour_folder(self.folder, self.source, hour)
        self._make_folder(folder)
        path = folder / f".{self.port}-{self.next_id:015d}.log{UNFINISHED}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        # Until the folder is known to have it, the file is one to be given up.
        self._file = _OpenFile(path, descriptor, hour, self.next_id, now, is_broken=True)
        self._sync_folder(folder)
        self._file.is_broken = False
        return self._file

    def _complete(self, file: Path) -> None:
        """Let a file that was left unfinished end with its last whole line, and name it."""
        with file.open("rb+") as stream:
            stream.truncate(_end_of_last_line(file))
            self.sync(stream.fileno())
        lines = _line_count(file)
        self.next_id = max(self.next_id, _first_id(file) + lines)
        if lines:
            self._keep_next_id()
            file.rename(file.with_name(file.name.removeprefix(".").removesuffix(UNFINISHED)))
        else:
            file.unlink()
        self._sync_folder(file.parent)

    @property
    def _next_id_file(self) -> Path:
        return self.folder / self.source / f".{self.port}.next_id"

    def _keep_next_id(self) -> None:
        fresh = self._next_id_file.with_name(f"{self._next_id_file.name}.fresh")
        with fresh.open("w", encoding="ascii") as stream:
            stream.write(f"{self.next_id}\n")
            stream.flush()
            self.sync(stream.fileno())
        fresh.replace(self._next_id_file)
        self._sync_folder(fresh.parent)

    def _make_folder(self, folder: Path) -> None:
        if not folder.is_dir():
            self._make_folder(folder.parent)
            folder.mkdir(exist_ok=True)
            self._sync_folder(folder.parent)

    def _sync_folder(self, folder: Path) -> None:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            self.sync(descriptor)
        finally:
            os.close(descriptor)


def close_hour(folder: Path, source: str, hour: Hour) -> None:
    """Say that no more lines of this log hour will come: write its ``_SUCCESS``.

    Raises:
        OSError: if it cannot be written.
    """
    of_hour = hour_folder(folder, source, hour)
    of_hour.mkdir(parents=True, exist_ok=True)
    with (of_hour / SUCCESS).open("wb") as stream:
        os.fsync(stream.fileno())


def open_hours(folder: Path, source: str, ports: Collection[int] | None, now: datetime) -> list[Hour]:
    """The log hours before now that are not closed, and in which lines came by these ports.

    None: in a folder that is the receiver's own all of them, also those whose files were forwarded.
    """
    hours = set()
    for of_hour in (folder / source).glob("log_date=*/log_hour=*"):
        hour = hour_of_folder(of_hour)
        if hour and hour.end <= now and not (of_hour / SUCCESS).exists():
            named = (_NAME.match(file.name) for file in of_hour.glob("*.log"))
            if ports is None or any(name and int(name["port"]) in ports for name in named):
                hours.add(hour)
    return sorted(hours)


def ports_left(folder: Path, source: str) -> set[int]:
    """The ports whose receiver left a file unfinished."""
    files = (folder / source).glob(f"log_date=*/log_hour=*/.*{UNFINISHED}")
    return {int(name["port"]) for file in files if (name := _NAME.match(file.name))}


def _write(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def _first_id(file: Path) -> int:
    named = _NAME.match(file.name)
    return int(named["first"]) if named else 0


def _line_count(file: Path) -> int:
    with file.open("rb") as stream:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: stream.read(_CHUNK), b""))


def _end_of_last_line(file: Path) -> int:
    """How many bytes the whole lines of a file have."""
    end = 0
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            newline = chunk.rfind(b"\n")
            if newline >= 0:
                end = stream.tell() - len(chunk) + newline + 1
    return end

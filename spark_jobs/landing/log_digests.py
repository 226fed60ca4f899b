"""Whether one log is the beginning of another, by a digest a line: eight bytes, not the line.

A log is known by what is in it, not by its name, which rotation changes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import IO

from include.storage import is_on_disk
from spark_jobs.lines.cut_lines import cut_at_lines
from spark_jobs.lines.decompress import DamagedFileError, decompressed

_DIGEST_BYTES = 8
_HAS_NO_END = b"\0"
_BEGINNING_BYTES = 1024
#: So many logs are looked at at a time in a store.
_READERS = 16
#: In place of the first line's digest, where that line has no end.
_CUT = b""


class DigestWriter:
    """Writes a digest for each line of a log, over this line and all before it: one digest says that all are equal.

    A byte more says that the last line has no end, and so may have been cut off.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._line = _digest_after(b"")
        self.is_in_line = False

    def add(self, data: bytes) -> None:
        """The next bytes of the log; a line end can only be their last one."""
        self._line.update(data.removesuffix(b"\n"))
        self.is_in_line = not data.endswith(b"\n")
        if not self.is_in_line:
            self._end_line()

    def finish(self) -> None:
        """The log has no more bytes."""
        if self.is_in_line:
            self._end_line()
            self._file.write(_HAS_NO_END)

    def _end_line(self) -> None:
        digest = self._line.digest()
        self._file.write(digest)
        self._line = _digest_after(digest)


def _digest_after(before: bytes, line: bytes = b"") -> blake2b:
    return blake2b(before + line, digest_size=_DIGEST_BYTES)


@dataclass(frozen=True)
class Log:
    """A log that has been split by hour: its digests, so many bytes, and the files that have its lines."""

    digests: Path
    size: int
    files: Callable[[], Iterable[Path]]

    @property
    def name(self) -> str:
        """As its files in the log hours are named, without ``.gz``."""
        return self.digests.name

    @property
    def lines(self) -> int:
        """How many it has."""
        return self.size // _DIGEST_BYTES

    @property
    def has_end(self) -> bool:
        """Whether its last line has one."""
        return self.size % _DIGEST_BYTES == 0

    @property
    def is_cut_in_first_line(self) -> bool:
        """Whether it may be the beginning of another one's first line."""
        return self.lines + self.has_end < 2

    @cached_property
    def beginning(self) -> bytes | None:
        """The first bytes of its first line; none if that is no longer in the landing zone, or too long."""
        line = self._line(1)
        return line and line[:_BEGINNING_BYTES]

    def digest(self, lines: int) -> bytes:
        """Of its first lines, so many."""
        if not lines:
            return b""
        with self.digests.open("rb") as file:
            file.seek((lines - 1) * _DIGEST_BYTES)
            return file.read(_DIGEST_BYTES)

    def is_beginning_of(self, other: Log) -> bool:
        """Whether the other log begins with all of this one's bytes."""
        last = self.lines
        if last > other.lines:
            return False
        if self.digest(last) == other.digest(last):
            return other.lines > last or other.has_end or not self.has_end
        if self.has_end or self.digest(last - 1) != other.digest(last - 1):
            return False
        cut_off, whole = self._line(last), other._line(last)
        return cut_off is not None and whole is not None and whole.startswith(cut_off)

    def lines_shared_with(self, other: Log) -> int:
        """How many lines the two have in common before the first that differs."""
        most = range(1, min(self.lines, other.lines) + 1)
        return bisect_left(most, True, key=lambda lines: self.digest(lines) != other.digest(lines))

    def _line(self, number: int) -> bytes | None:
        """A line, found by its digest; none if it is too long to be kept or no longer in the landing zone."""
        before, digest = self.digest(number - 1), self.digest(number)
        for file in self.files():
            with file.open("rb") as stream, suppress(DamagedFileError):
                for piece, _ in cut_at_lines(decompressed(stream, file.name)):
                    for line in BytesIO(piece):
                        content = line.removesuffix(b"\n")
                        if _digest_after(before, content).digest() == digest:
                            return content
        return None


class LogsByFirstLine:
    """Logs, of which each is compared with those only that it may have a line in common with."""

    def __init__(self, logs: Sequence[Log]) -> None:
        self._logs: dict[bytes, dict[str, Log]] = {}
        self._key_by_name: dict[str, bytes] = {}
        with ThreadPoolExecutor(_READERS) as readers:
            # A store takes some 10 ms for each, a disk less than a thread.
            are_near = not logs or is_on_disk(logs[0].digests)
            keys = map(_key, logs) if are_near else readers.map(_key, logs)
            for log, key in zip(logs, keys, strict=True):
                self._add(log, key)

    def add(self, log: Log) -> None:
        """Another one, in place of that of its name."""
        self._add(log, _key(log))

    def _add(self, log: Log, key: bytes) -> None:
        if (before := self._key_by_name.get(log.name)) is not None:
            del self._logs[before][log.name]
        self._key_by_name[log.name] = key
        self._logs.setdefault(key, {})[log.name] = log

    def alike(self, log: Log) -> list[Log]:
        """Those that may have a line in common with it, or the beginning of one, by their names."""
        if log.is_cut_in_first_line:
            alike, cut = [], [other for others in self._logs.values() for other in others.values()]
        else:
            alike, cut = ([*self._logs.get(key, {}).values()] for key in (_key(log), _CUT))
        return sorted(alike + [other for other in cut if _begin_alike(log, other)], key=lambda other: other.name)


def _begin_alike(log: Log, other: Log) -> bool:
    """Whether what is known of the first line of one may begin that of the other."""
    ours, theirs = log.beginning, other.beginning
    return ours is None or theirs is None or ours.startswith(theirs) or theirs.startswith(ours)


def _key(log: Log) -> bytes:
    return _CUT if log.is_cut_in_first_line else log.digest(1)

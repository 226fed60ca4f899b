"""The event ids that a stream knows: files of hashes, in which each task of a micro-batch looks its partition's up.

A partition's folder has files of sorted hashes, each with what some micro-batches have added; now and then a task
merges several small ones. So a micro-batch reads what it looks up, not all that is known. A file is named after its
first and last micro-batch and the newest log hour that it knows of, such as ``12_17_489203.npy``.

A micro-batch looks at files of earlier ones only, and writes one of its own: if it is tried again, it decides the same,
whatever its first try has left; and one that is tried by a query that should have ended writes what is there already.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import time
from typing import Any, NamedTuple

import numpy as np

from include.storage import write_whole
from spark_jobs.ingest.columns import write_array

#: So many files of a partition are merged, if each is at most twice as large as all later ones; into one of so many ids
#: at most, 24 bytes each.
_LEAST_MERGED, _MOST_IDS = 4, 1 << 23
#: Another task may merge files while they are listed: how often they are listed again.
_TRIES = 10
#: The log hour of an arrival of which it is not known: it is near every other one.
ANY_HOUR = -(2**31)
Numbers = np.ndarray[Any, np.dtype[Any]]


class Ids(NamedTuple):
    """Accepted arrivals in the order of ``high``: two 64-bit hashes of each one's id, and two log hours, packed."""

    high: Numbers
    low: Numbers
    hours: Numbers

    @classmethod
    def of(cls, high: Numbers, low: Numbers, log_hour: Numbers, kept_from: Numbers) -> Ids:
        """Of columns in any order; ``kept_from`` is the log hour from which on the id is kept for its time."""
        hours = np.stack([log_hour, kept_from], axis=1).astype(np.int32).view(np.uint64).ravel()
        return cls.joined([cls(high.view(np.uint64), low.view(np.uint64), hours)])

    @classmethod
    def joined(cls, parts: Iterable[Ids]) -> Ids:
        """All of them, in order."""
        high, low, hours = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(high, kind="stable")
        return cls(high[order], low[order], hours[order])

    @property
    def log_hour(self) -> Numbers:
        """The log hour of each arrival."""
        return np.asarray(self.hours).view(np.int32)[::2]

    @property
    def kept_from(self) -> Numbers:
        """The log hour from which on each is kept for its time."""
        return np.asarray(self.hours).view(np.int32)[1::2]

    def number(self, partitions: int) -> Numbers:
        """In which of so many partitions each is."""
        return np.asarray(self.high).view(np.int64) % partitions

    def where(self, chosen: Numbers) -> Ids:
        """Those of them."""
        return Ids(*(column[chosen] for column in self))

    def seen(self, high: Numbers, low: Numbers) -> tuple[Numbers, Numbers]:
        """The numbers of those of the given ids that are among these, and which of these; ``high`` is sorted."""
        if not len(self.high):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        start = np.searchsorted(self.high, high)
        is_there = self.high[np.minimum(start, len(self.high) - 1)] == high
        number = np.flatnonzero(is_there)
        end = np.searchsorted(self.high, high[number], side="right")
        count = end - start[number]
        number = np.repeat(number, count)
        place = np.arange(len(number)) - np.repeat(np.cumsum(count) - count, count) + start[number]
        same = self.low[place] == low[number]
        return number[same], place[same]


class IdFile(NamedTuple):
    """A file of ids: those that the micro-batches from ``first`` to ``last`` have added."""

    path: Path
    first: int
    last: int
    newest_hour: int

    @classmethod
    def in_folder(cls, folder: Path) -> list[IdFile]:
        """The files of a partition in the order of micro-batches, without those that are part of another one."""
        files = [cls(path, *map(int, path.stem.split("_"))) for path in folder.glob("[0-9]*.npy")]
        found: list[IdFile] = []
        for file in sorted(files, key=lambda file: (file.first, -file.last)):
            if not found or file.last > found[-1].last:
                found.append(file)
        return found

    @classmethod
    def write(cls, folder: Path, first: int, last: int, newest_hour: int, ids: Ids) -> None:
        """Keep ids as the file of these micro-batches, whole or not at all."""
        path = folder / f"{first}_{last}_{newest_hour}.npy"
        write_whole(path, lambda file: write_array(file, np.stack(ids)))
        cls.remove(folder, first, last, path)

    @staticmethod
    def remove(folder: Path, first: int, last: int, left: Path | None = None) -> None:
        """Remove what tries of these micro-batches have written, but for the file that is ``left``."""
        for path in folder.glob(f"{first}_{last}_*.npy"):
            if path != left:
                path.unlink(missing_ok=True)

    @staticmethod
    def ids_in(size_bytes: int) -> int:
        """How many ids a file of this size has: 24 bytes each, after numpy's header."""
        return (size_bytes - 128) // 24

    def load(self) -> Ids:
        """Its ids, read as they are looked at."""
        return Ids(*np.load(self.path, mmap_mode="r"))


@dataclass
class KnownIds:
    """The ids of one partition, for one micro-batch: those of earlier ones, and those that it adds.

    An arrival is a duplicate if an accepted one of its id lies at most ``lateness_hours`` log hours before or after it.
    An id is kept until the stream reads log hours ``2 * lateness_hours + 2`` later; one of an old log hour as if it was
    of the start of the lateness window when it was read.
    """

    folder: Path
    batch_id: int
    lateness_hours: int
    _earlier: list[tuple[IdFile, Ids]] = field(init=False)
    _added: list[Ids] = field(default_factory=list, init=False)
    _newest_hour: int = field(init=False)
    #: What is kept from an earlier hour is forgotten: by earlier micro-batches, so that each try forgets the same.
    _oldest: int = field(init=False)

    def __post_init__(self) -> None:
        self._earlier = self._load()
        self._newest_hour = max((file.newest_hour for file, _ in self._earlier), default=-(2**31))
        self._oldest = self._newest_hour - 2 * self.lateness_hours - 2

    def _load(self) -> list[tuple[IdFile, Ids]]:
        for _ in range(_TRIES - 1):
            try:
                return list(self._loaded())
            except FileNotFoundError:
                continue
        return list(self._loaded())

    def _loaded(self) -> Iterator[tuple[IdFile, Ids]]:
        for file in IdFile.in_folder(self.folder):
            if file.last < self.batch_id:
                yield file, file.load()

    def add(self, high: Numbers, low: Numbers, log_hour: Numbers) -> Numbers:
        """Which of these arrivals, in their order, are no duplicates; from then on they are known."""
        order = np.argsort(high.view(np.uint64), kind="stable")
        first = self._first_of_hours(high, low, log_hour, order)
        arrived = Ids(high.view(np.uint64)[first], low.view(np.uint64)[first], log_hour[first])
        is_new = np.ones(len(first), bool)
        for ids in (*(ids for _, ids in self._earlier), *self._added):
            number, place = ids.seen(arrived.high, arrived.low)
            seen = ids.log_hour[place]
            is_near = abs(arrived.hours[number].astype(np.int64) - seen) <= self.lateness_hours
            is_near |= seen == ANY_HOUR
            is_new[number[is_near & (ids.kept_from[place] >= self._oldest)]] = False
        self._drop_repeated(arrived, first, is_new)
        accepted = np.zeros(len(high), bool)
        accepted[first[is_new]] = True
        self._know(arrived.where(is_new))
        return accepted

    def _first_of_hours(self, high: Numbers, low: Numbers, log_hour: Numbers, order: Numbers) -> Numbers:
        """The numbers of the first arrivals of each id and log hour, in the order of ``high``."""
        is_same = high[order[1:]] == high[order[:-1]]
        if not is_same.any():
            return order
        order = np.lexsort((np.arange(len(high)), log_hour, low.view(np.uint64), high.view(np.uint64)))
        changes = (column[order[1:]] != column[order[:-1]] for column in (high, low, log_hour))
        return np.asarray(order[np.append(True, np.logical_or.reduce(list(changes)))])

    def _drop_repeated(self, arrived: Ids, place: Numbers, is_new: Numbers) -> None:
        """Of ids that arrive in several log hours, take those for new that are far enough from those before them."""
        is_same = (arrived.high[1:] == arrived.high[:-1]) & (arrived.low[1:] == arrived.low[:-1])
        of_several = np.flatnonzero(np.append(is_same, False) | np.append(False, is_same))
        accepted: dict[tuple[int, int], list[int]] = defaultdict(list)
        for number in sorted(of_several[is_new[of_several]], key=lambda number: place[number]):
            seen, hour = accepted[int(arrived.high[number]), int(arrived.low[number])], int(arrived.hours[number])
            is_new[number] = all(abs(hour - other) > self.lateness_hours for other in seen)
            if is_new[number]:
                seen.append(hour)

    def _know(self, new: Ids) -> None:
        if not len(new.high):
            return
        # A folder that is dated in the future moves nothing.
        hours = np.minimum(new.hours, int(time() // 3600))
        self._newest_hour = max(self._newest_hour, int(hours.max()))
        kept_from = np.maximum(hours, self._newest_hour - self.lateness_hours)
        self._added.append(Ids.of(new.high, new.low, new.hours, kept_from))
        while len(self._added) > 1 and len(self._added[-2].high) <= 2 * len(self._added[-1].high):
            self._added.append(Ids.joined([self._added.pop(), self._added.pop()]))

    def end(self) -> None:
        """Keep what was added, in place of what an earlier try has added; forget what is old, and have few files."""
        while self._earlier and self._earlier[0][0].newest_hour < self._oldest:
            self._earlier.pop(0)[0].path.unlink(missing_ok=True)
        self._merge(self._small_files())
        if self._added:
            added = Ids.joined(self._added)
            IdFile.write(self.folder, self.batch_id, self.batch_id, self._newest_hour, added)
        else:
            IdFile.remove(self.folder, self.batch_id, self.batch_id)

    def _small_files(self) -> list[tuple[IdFile, Ids]]:
        """The last files, of which none is much larger than those after it."""
        last: list[tuple[IdFile, Ids]] = []
        size = 0
        for one in reversed(self._earlier):
            added = len(one[1].high)
            if last and (added > 2 * size or added + size > _MOST_IDS):
                break
            last.insert(0, one)
            size += added
        return last

    def _merge(self, files: Sequence[tuple[IdFile, Ids]]) -> None:
        if len(files) < _LEAST_MERGED:
            return
        ids = Ids.joined(ids for _, ids in files)
        ids = ids.where(ids.kept_from >= self._oldest)
        first, last = files[0][0].first, files[-1][0].last
        if len(ids.high):
            IdFile.write(self.folder, first, last, max(file.newest_hour for file, _ in files), ids)
        for file, _ in files:
            file.path.unlink(missing_ok=True)

"""The event ids that a stream knows: files of hashes, in which each task of a micro-batch looks its partition's up.

Files have sorted hashes, each those of some micro-batches; now and then a task merges several small ones. So a
micro-batch reads what it looks up, not all that is known. A task writes files that nobody reads before a later
micro-batch, and says what its partition's are from then on: see ``spark_jobs/ids/id_manifest.py``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import time
from typing import NamedTuple

import numpy as np

from spark_jobs.ids.hash_files import SortedHashes
from spark_jobs.ids.partitions import HashRange, Numbers
from spark_jobs.lines.columns import is_among

#: So many files of a partition are merged, if each is at most twice as large as all smaller ones; into one of so many
#: ids at most.
_LEAST_MERGED, _MOST_IDS = 4, 1 << 22
#: What an id takes in a file.
ID_BYTES = 24
#: Before every log hour.
NO_HOUR = -(2**31)


def now_hour() -> int:
    """The hour that it is, in hours since 1970."""
    return int(time() // 3600)


class Ids(SortedHashes):
    """Accepted arrivals: two 64-bit hashes of each one's id, in the order of the first, and two log hours, packed."""

    @classmethod
    def of(cls, high: Numbers, low: Numbers, log_hour: Numbers, kept_from: Numbers) -> Ids:
        """Of columns in any order; ``kept_from`` is the log hour from which on the id is kept for its time."""
        return cls.joined([cls((high.view(np.uint64), low.view(np.uint64), _packed(log_hour, kept_from)))])

    @property
    def log_hour(self) -> Numbers:
        """The log hour of each arrival."""
        return self.columns[2].view(np.int32)[::2]

    @property
    def kept_from(self) -> Numbers:
        """The log hour from which on each is kept for its time."""
        return self.columns[2].view(np.int32)[1::2]

    def kept(self, oldest: int) -> Ids:
        """Those that are kept from this log hour, or a later one."""
        is_kept = self.kept_from >= oldest
        return self if is_kept.all() else self.where(is_kept)

    def kept_at_most_from(self, hour: int) -> Ids:
        """They, none of them kept from a later log hour than this."""
        return Ids((*self.columns[:2], _packed(self.log_hour, np.minimum(self.kept_from, hour))))

    def seen(self, high: Numbers, low: Numbers) -> tuple[Numbers, Numbers]:
        """The numbers of those of the given ids that are among these, and which of these; ``high`` is sorted."""
        number = np.flatnonzero(is_among(high, self.hashes))
        start, end = (np.searchsorted(self.hashes, high[number], side=side) for side in ("left", "right"))
        count = end - start
        number = np.repeat(number, count)
        place = np.arange(len(number)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(start, count)
        same = self.columns[1][place] == low[number]
        return number[same], place[same]


def _packed(log_hour: Numbers, kept_from: Numbers) -> Numbers:
    return np.stack([log_hour, kept_from], axis=1).astype(np.int32).view(np.uint64).ravel()


class IdFile(NamedTuple):
    """What is known by a file, of its name in the stream's folder: of its ids so many, which are those of a range.

    ``newest_hour`` is the latest ``kept_from`` among them.
    """

    name: str
    hashes: HashRange
    ids: int
    newest_hour: int

    @classmethod
    def write(cls, folder: Path, ids: Ids, hashes: HashRange) -> IdFile:
        """Keep ids of a range as a file, whole or not at all."""
        return cls(ids.write(folder, is_durable=True).name, hashes, len(ids), int(ids.kept_from.max()))

    def within(self, hashes: HashRange) -> IdFile | None:
        """What of it is in this range, ``ids`` as before; None if nothing is."""
        first, last = max(self.hashes.first, hashes.first), min(self.hashes.last, hashes.last)
        return self._replace(hashes=HashRange(first, last)) if first <= last else None

    def load(self, folder: Path) -> Ids:
        """Its ids."""
        return Ids.read(folder / self.name).within(self.hashes)


@dataclass
class KnownIds:
    """The ids of one partition, for one micro-batch: those of earlier ones, and those that it adds.

    An arrival is a duplicate if an accepted one of its id lies at most ``lateness_hours`` log hours before or after it.
    An id is kept until the stream reads log hours ``2 * lateness_hours + 2`` later; one of an old log hour as if it was
    of the start of the lateness window when it was read. ``newest_hour`` is the latest that the stream has read.
    ``kept_hours``: if ids are to be kept longer than that.
    """

    folder: Path
    hashes: HashRange
    files: Sequence[IdFile]
    lateness_hours: int
    newest_hour: int
    kept_hours: int = 0
    _earlier: list[tuple[IdFile, Ids]] = field(init=False)
    _added: list[Ids] = field(default_factory=list, init=False)
    #: What is kept from an earlier hour is forgotten: by earlier micro-batches, so that each try forgets the same.
    _oldest: int = field(init=False)
    _newest_before: int = field(init=False)

    def __post_init__(self) -> None:
        loaded = ((file, file.load(self.folder)) for file in self.files)
        known = [(file._replace(ids=len(ids)), ids) for file, ids in loaded if len(ids)]
        self._earlier = sorted(known, key=lambda pair: -pair[0].ids)
        self._oldest = self.newest_hour - max(self.kept_hours, 2 * self.lateness_hours + 2)
        self._newest_before = self.newest_hour

    def add(self, high: Numbers, low: Numbers, log_hour: Numbers) -> Numbers:
        """Which of these arrivals, in their order, are no duplicates; from then on they are known."""
        order = np.argsort(high.view(np.uint64), kind="stable")
        first = self._first_of_hours(high, low, log_hour, order)
        arrived = SortedHashes((high.view(np.uint64)[first], low.view(np.uint64)[first], log_hour[first]))
        hashes, others, hours = arrived.columns
        is_new = np.ones(len(first), bool)
        for ids in (*(ids for _, ids in self._earlier), *self._added):
            number, place = ids.seen(hashes, others)
            is_near = abs(hours[number].astype(np.int64) - ids.log_hour[place]) <= self.lateness_hours
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

    def _drop_repeated(self, arrived: SortedHashes, place: Numbers, is_new: Numbers) -> None:
        """Of ids that arrive in several log hours, take those for new that are far enough from those before them."""
        high, low, hours = arrived.columns
        is_same = (high[1:] == high[:-1]) & (low[1:] == low[:-1])
        of_several = np.flatnonzero(np.append(is_same, False) | np.append(False, is_same))
        accepted: dict[tuple[int, int], list[int]] = defaultdict(list)
        for number in sorted(of_several[is_new[of_several]], key=lambda number: place[number]):
            seen, hour = accepted[int(high[number]), int(low[number])], int(hours[number])
            is_new[number] = all(abs(hour - other) > self.lateness_hours for other in seen)
            if is_new[number]:
                seen.append(hour)

    def _know(self, new: SortedHashes) -> None:
        if not len(new):
            return
        high, low, log_hour = new.columns
        # A folder that is dated in the future moves nothing.
        hours = np.minimum(log_hour, now_hour())
        self.newest_hour = max(self.newest_hour, int(hours.max()))
        kept_from = np.maximum(hours, self.newest_hour - self.lateness_hours)
        self._added.append(Ids.of(high, low, log_hour, kept_from))
        while len(self._added) > 1 and len(self._added[-2]) <= 2 * len(self._added[-1]):
            self._added.append(Ids.joined([self._added.pop(), self._added.pop()]))

    def end(self) -> list[IdFile]:
        """Keep what was added, forget what is old, and have few files: those that the next micro-batch looks at."""
        kept = [(file, ids) for file, ids in self._earlier if self._oldest <= file.newest_hour <= self._newest_before]
        # Of a clock that was ahead: else they would be kept until it is as late as that clock said.
        ahead = [
            ids.kept_at_most_from(self._newest_before)
            for file, ids in self._earlier
            if file.newest_hour > self._newest_before
        ]
        small = self._small_files(kept)
        files = [file for file, _ in kept[: len(kept) - len(small)]]
        new = [ids.kept(self._oldest) for ids in [*ahead, *([Ids.joined(small)] if small else [])]]
        if self._added:
            new.append(Ids.joined(self._added))
        return files + [IdFile.write(self.folder, ids, self.hashes) for ids in new if len(ids)]

    def _small_files(self, files: Sequence[tuple[IdFile, Ids]]) -> list[Ids]:
        """The last files, of which none is much larger than those after it; none if they are few."""
        last: list[Ids] = []
        size = 0
        for file, ids in reversed(files):
            if last and (file.ids > 2 * size or file.ids + size > _MOST_IDS):
                break
            last.append(ids)
            size += file.ids
        return last if len(last) >= _LEAST_MERGED else []

"""The logs of a source in the landing zone: which there are, and how another one is landed in one step.

Each has its digests in ``landing/<source>/.logs``, in a file that is named as its files in the log hours are.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from include.errors import ClickmillError, NotALogError
from include.hours import Hour
from include.landing import SUCCESS, hour_folder, hour_of_folder
from include.storage import entries, filled_here, find, is_on_disk, move, remove_folder, touch, write_whole
from spark_jobs.landing.log_digests import Log, LogsByFirstLine

#: The file of a log's digests, beside its files by hour.
DIGESTS = "digests"
_PLAN = "plan.json"


@dataclass(frozen=True)
class Landed:
    """What became of a log.

    ``name`` is that of its files in the log hours, without ``.gz``. ``lines`` are those landed by log hour, 0 where it
    has none any more; no log hour if the log had been landed before, and more of it. ``begins_as`` has the other logs
    that begin with the same lines, and how many these are.
    """

    name: str
    lines: Mapping[Hour, int]
    begins_as: Mapping[str, int] = field(default_factory=dict)


@contextmanager
def landed_logs(landing: Path, source: str, require_lock: Callable[[], None] = lambda: None) -> Iterator[LandedLogs]:
    """The landed logs of a source, of which nobody else on this machine lands any meanwhile.

    What a killed process had landed is moved to its place first; what it had only begun to split is removed.
    ``require_lock`` raises if the lock that keeps out other machines is lost: asked before anything is moved.

    Raises:
        ClickmillError: if the landing zone cannot be written.
    """
    folder = landing / source / ".logs"
    with ExitStack() as locked:
        try:
            if is_on_disk(folder):
                locked.enter_context(_locked(folder))
            logs = LandedLogs(landing, source, folder, require_lock)
            logs.finish_moving()
        except OSError as error:
            raise ClickmillError(f"the landing zone cannot be written: {error}; try again when that is fixed") from None
        yield logs


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


class LandedLogs:
    """A log is split, and its files are put into the folder ``ready``; the plan in there lands it, all or nothing.

    Then its files are moved to their log hours, by the next process if this one is killed.
    """

    def __init__(self, landing: Path, source: str, folder: Path, require_lock: Callable[[], None]) -> None:
        self._landing, self._source, self._folder = landing, source, folder
        self._require_lock = require_lock
        self._ready = folder / "ready"
        #: A folder of this machine.
        self._unfinished = Path()

    @contextmanager
    def splitting(self) -> Iterator[Path]:
        """The empty folder for the files ``<hour>.gz`` and ``DIGESTS`` of a log; removed if it is not landed."""
        with filled_here(self._folder / "unfinished") as self._unfinished:
            yield self._unfinished

    def land(self, lines: Mapping[Hour, int], name: str, *, is_streamed: bool) -> Landed:
        """Land the log that has been split, in place of what was landed of it before.

        Args:
            lines: how many it has by log hour.
            name: what the names of its files begin with, if nothing of it was landed before.
            is_streamed: whether a stream reads each file once, by its name.

        Raises:
            NotALogError: if the log has grown, or its last line was cut off, and a stream would not read what is new.
        """
        digests = self._unfinished / DIGESTS
        log = Log(digests, digests.stat().st_size, lambda: self._unfinished.glob("*.gz"))
        others = self._logs.alike(log)
        before = next((other for other in others if other.is_beginning_of(log)), None)
        if before is None:
            longer = next((other for other in others if log.is_beginning_of(other) and any(other.files())), None)
            if longer is not None:
                return Landed(longer.name, {})
        if is_streamed and before is not None and any(before.files()):
            self._require_read_whole(before, log)
        name = before.name if before else f"{name}-{log.digest(log.lines).hex()[:12]}"
        earlier = (hour_of_folder(file.parent) for file in before.files()) if before else ()
        # An hour that has no lines of the log any more keeps an empty file, so that it is closed again each time.
        hours = dict.fromkeys(filter(None, earlier), 0) | dict(lines)
        for hour in hours.keys() - lines.keys():
            (self._unfinished / f"{hour}.gz").touch()
        begins_as = {other.name: log.lines_shared_with(other) for other in others if other is not before}
        self._move_to_log_hours(name, hours)
        files = [hour_folder(self._landing, self._source, hour) / f"{name}.gz" for hour in hours]
        self._logs.add(Log(self._folder / name, log.size, lambda: (file for file in files if file.exists())))
        return Landed(name, hours, {other: shared for other, shared in begins_as.items() if shared})

    def _require_read_whole(self, before: Log, log: Log) -> None:
        was_cut = before.digest(before.lines) != log.digest(before.lines)
        if not was_cut and before.lines == log.lines:
            return
        has = []
        if was_cut:
            has.append(f"has line {before.lines} whole, which was cut off when it was landed")
        if before.lines < log.lines:
            has.append(f"has grown from {before.lines} to {log.lines} lines")
        first = before.lines if was_cut else before.lines + 1
        raise NotALogError(
            f"{self._source} is streamed from its landing zone, and a stream reads a file once: the log that was "
            f"landed as {before.name} {' and '.join(has)}, and what is new would not be read; land that alone, as a "
            f"separate file, such as by tail -n +{first}"
        )

    @cached_property
    def _logs(self) -> LogsByFirstLine:
        there = (entry for entry in entries(self._folder) if entry.is_file)
        return LogsByFirstLine([self._landed(entry.path, entry.size) for entry in there])

    def _landed(self, digests: Path, size: int) -> Log:
        pattern = f"log_date=*/log_hour=*/{digests.name}.gz"
        return Log(digests, size, lambda: (entry.path for entry in find(digests.parent.parent, pattern)))

    def _move_to_log_hours(self, name: str, hours: Iterable[Hour]) -> None:
        plan = json.dumps({"name": name, "hours": [*map(str, hours)]}).encode()
        for file in sorted(self._unfinished.iterdir()):
            self._move(file, self._ready / file.name)
        self._require_lock()
        write_whole(self._ready / _PLAN, plan)
        self.finish_moving()

    def finish_moving(self) -> None:
        """Move what is not in its place yet; the marks of the log hours come last."""
        written = self._ready / _PLAN
        if written.exists():
            plan = json.loads(written.read_bytes())
            folders = {hour: hour_folder(self._landing, self._source, Hour.parse(hour)) for hour in plan["hours"]}
            for hour, folder in folders.items():
                self._move(self._ready / f"{hour}.gz", folder / f"{plan['name']}.gz")
            self._move(self._ready / DIGESTS, self._folder / plan["name"])
            self._require_lock()
            for folder in folders.values():
                touch(folder / SUCCESS)
            written.unlink()
        self._require_lock()
        remove_folder(self._ready)

    def _move(self, file: Path, to: Path) -> None:
        self._require_lock()
        if file.exists():  # else it was moved before the process was killed
            move(file, to)

"""From the receiver's disk into the landing zone of an object store, which cannot add to a file."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from include.errors import ClickmillError, LockHeldError, LockLostError, UsageError
from include.landing import SUCCESS
from include.locks import Held, locks_of
from include.settings import Settings
from include.storage import touch, write_once
from ops.receiver.spool import UNFINISHED


def lock_name(source: str) -> str:
    """The lock of whoever receives the source."""
    return f"receiver-{source}"


def forward(folder: Path, landing: Path, source: str, require_lock: Callable[[], None]) -> None:
    """Move the complete files, and close the hours that are closed here, each after all of its files.

    Ended anywhere and called again it goes on: a file is moved whole, and again by the same name. One at a time. What
    cannot be moved keeps its own hour open, and no other.

    Raises:
        OSError: if the store, or the disk, refuses; or another receiver has such a file there, which stays.
        LockLostError: if another receiver may have the source.
    """
    refused: list[OSError] = []
    for of_hour in sorted((folder / source).glob("log_date=*/log_hour=*")):
        try:
            _forward_hour(of_hour, landing / of_hour.relative_to(folder), require_lock)
        except OSError as error:
            refused.append(error)
    if refused:
        raise refused[0]


def _forward_hour(of_hour: Path, landed: Path, require_lock: Callable[[], None]) -> None:
    # Looked at first: no file comes after it.
    is_closed = (of_hour / SUCCESS).exists()
    files = sorted(of_hour.glob("[0-9]*.log"))
    for file in files:
        require_lock()
        _move(file, landed / file.name)
    # A file that nobody completes holds lines that were acknowledged.
    if is_closed and not any(of_hour.glob(f".*{UNFINISHED}")):
        require_lock()
        if files or not (landed / SUCCESS).exists():
            touch(landed / SUCCESS)
        (of_hour / SUCCESS).unlink()
        of_hour.rmdir()
        if of_hour.name == "log_hour=23":
            with suppress(OSError):  # another hour of the day is not closed
                of_hour.parent.rmdir()


def _move(file: Path, landed: Path) -> None:
    lines = file.read_bytes()
    if not write_once(landed, lines) and landed.read_bytes() != lines:
        raise FileExistsError(
            f"{landed} is there with other lines: another receiver, or one whose disk was lost, had the source and the "
            f"port. {file} is kept: give this receiver other ports in sources.toml, and the file the number of one of "
            "them, then start it again"
        )
    file.unlink()


@dataclass
class Forwarder:
    """Forwards what a receiver has stored, while it holds the lock by which one receiver has the source."""

    settings: Settings
    source: str
    _held: ExitStack = field(default_factory=ExitStack)
    _lock: Held | None = None
    _had_it: bool = False

    def take(self) -> None:
        """Take the lock, unless it is held.

        Raises:
            OSError: if the store or the database of the locks does not answer.
            UsageError: if there are no locks, or they are not where other jobs have them.
            ClickmillError: if another receiver has had the source all along.
        """
        try:
            if self._lock is None:
                self._lock = self._held.enter_context(locks_of(self.settings).held(lock_name(self.source), 0))
                self._had_it = True
        except UsageError:
            raise
        except ClickmillError as error:
            if isinstance(error, LockHeldError) and not self._had_it:
                raise ClickmillError(f"{self.source} is received already, {error}: end that one first") from None
            # A connection that was cut may hold it for seconds yet.
            raise OSError(str(error)) from None

    def forward(self) -> None:
        """As ``forward``, in the thread that takes the lock. If that is lost the next call takes it again.

        Raises:
            OSError: if the store, the database of the locks or the disk refuses.
            ClickmillError: as ``take``.
        """
        self.take()
        assert self._lock is not None
        try:
            forward(self.settings.received, self.settings.landing, self.source, self._lock.require)
        except LockLostError as error:
            self.let_go()
            raise OSError(str(error)) from None

    def let_go(self) -> None:
        """Give the lock up."""
        self._lock = None
        held, self._held = self._held, ExitStack()
        with suppress(ClickmillError):  # it is lost already
            held.close()

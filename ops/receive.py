"""Receive clicks over TCP, one line a click, into the landing zone of each source with [sockets].

A client sends lines and reads answers: `stored <n> <id>` says that the first n lines of this connection are on the disk
for good, and that the last of them has this sequence id of its port. What was not answered is to be sent again. While a
client's lines are stored nothing is read from it, so one that is faster than the disk is slowed down.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from contextlib import ExitStack

from filelock import FileLock, Timeout

from include.errors import ClickmillError, UsageError
from include.locks import locks_of
from include.settings import Settings
from include.sources import Source, load_sources
from include.storage import is_on_disk
from ops.home import find_home
from ops.receiver.forward import lock_name
from ops.receiver.receiver import Receiver
from ops.services.beside import start_beside
from ops.services.programs import RECEIVER

START_SECONDS = 30.0


def sources_with_sockets(settings: Settings, name: str) -> list[Source]:
    """The named source, or with ``all`` every one that has [sockets].

    Raises:
        UsageError: if there is none.
    """
    sources = [source for source in load_sources(settings).values() if source.sockets and name in ("all", source.name)]
    if not sources:
        raise UsageError(
            f"no source {name!r} with sockets in {settings.sources_file}: expected a "
            f"[sources.{'NAME' if name == 'all' else name}.sockets] table"
        )
    return sources


def is_received(settings: Settings, source: str) -> bool:
    """Whether a process receives the source's lines, on this machine or, with a landing zone in a store, on any."""
    if not is_on_disk(settings.landing):
        return any(holder.name == lock_name(source) for holder in locks_of(settings).holders())
    try:
        with _lock(settings, source):
            return False
    except Timeout:
        return True


def _lock(settings: Settings, source: str) -> FileLock:
    settings.locks.mkdir(parents=True, exist_ok=True)
    return FileLock(settings.locks / f"{lock_name(source)}.lock", timeout=0)


async def receive(settings: Settings, sources: Sequence[Source]) -> None:
    """Receive for these sources until SIGTERM or SIGINT.

    Raises:
        UsageError: if a port is taken, or there are no locks for a landing zone in a store.
        ClickmillError: if a source is received already, or the disk, or the store, refuses.
    """
    told_to_end = asyncio.Event()
    for ending in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(ending, told_to_end.set)
    with ExitStack() as stack:
        receivers = [Receiver(settings, source) for source in sources]
        for receiver in receivers:
            name = receiver.source.name
            try:
                stack.enter_context(_lock(settings, name))
            except Timeout:
                raise ClickmillError(f"{name} is received already, by another process: end that one first") from None
        try:
            for receiver in receivers:
                receiver.prepare()
            running = [asyncio.create_task(receiver.run(told_to_end)) for receiver in receivers]
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            told_to_end.set()
            for error in await asyncio.gather(*running, return_exceptions=True):
                if isinstance(error, BaseException):
                    raise error
        except OSError as error:
            verb = "stored" if is_on_disk(settings.landing) else "stored, or not forwarded"
            raise ClickmillError(
                f"lines cannot be {verb} ({error}); what was acknowledged is on the disk, and the next start goes on"
            ) from error


def start_receiver(settings: Settings) -> str:
    """Start the receiver beside the other services of the home; a line on it.

    Raises:
        ClickmillError: if no services run, or it does not come up.
    """
    start_beside(find_home(), RECEIVER, START_SECONDS)
    names = ", ".join(source.name for source in sources_with_sockets(settings, "all"))
    return f"receiving {names}; to end it: clickmill receive stop"

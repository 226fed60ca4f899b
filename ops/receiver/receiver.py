"""The receiver of clicks over TCP: it stores each client's lines on a disk, answers, and closes the hours.

The disk is that of the landing zone; if that is in an object store, files and closed hours are forwarded to it.

While a client's lines are stored nothing is read from it, so one that is faster than the disk is slowed down.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from include.errors import UsageError
from include.hours import Hour
from include.settings import Settings
from include.sources import ClickSockets, Source
from include.storage import is_on_disk
from ops.receiver.connection import Connection
from ops.receiver.forward import Forwarder
from ops.receiver.spool import Spool, close_hour, open_hours, ports_left

T = TypeVar("T")

#: So many clients may wait to be accepted.
BACKLOG = 100
#: How often it is looked whether a file or an hour is complete, and how long until a full disk is tried again.
LOOK_SECONDS = 0.2
RETRY_SECONDS = 1.0
#: How long a start waits for the lock by which one receiver has a source.
LOCK_SECONDS = 5.0
#: How often it is said that the disk still refuses.
REMIND_SECONDS = 60.0
#: How long clients that do not read their answers are waited for at the end.
PATIENCE_SECONDS = 5.0
#: What is stored of a line beyond the longest that is read, so that it is quarantined as too long: parse_lines may
#: take a byte order mark and a carriage return away.
SPARE_BYTES = 16


class NotStoredError(Exception):
    """The receiver ends before the disk has taken the lines. A signal inside the receiver: no person sees it."""


class RetryingThread:
    """One thread for what a disk or a store may refuse; says that it does, and what is done ``meanwhile``."""

    def __init__(self, receiver: str, meanwhile: str) -> None:
        self._receiver, self._meanwhile = receiver, meanwhile
        self._thread = ThreadPoolExecutor(1)
        self._refused_since: float | None = None
        self._reminded_at = 0.0

    async def done(self, work: Callable[[], object]) -> None:
        """Do the work in this thread.

        Raises:
            OSError: if it is refused.
        """
        await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def tried(self, work: Callable[[], object]) -> bool:
        """Whether the work is done; if it was refused, a word on it is left."""
        try:
            await self.done(work)
        except OSError as error:
            now = time.monotonic()
            if self._refused_since is None or now - self._reminded_at >= REMIND_SECONDS:
                self._reminded_at = now
                say(f"{self._receiver} refuses ({error}); {self._meanwhile}, it is tried again")
            self._refused_since = self._refused_since or now
            return False
        if self._refused_since is not None:
            seconds = time.monotonic() - self._refused_since
            say(f"{self._receiver} takes lines again, after {seconds:.0f} s")
            self._refused_since = None
        return True

    @property
    def is_refused(self) -> bool:
        """Whether the newest try was refused."""
        return self._refused_since is not None

    def end(self) -> None:
        """End the thread."""
        self._thread.shutdown()


@dataclass
class PortReader:
    """One port: its clients, and the one thread that stores their lines, all that have come meanwhile in one go."""

    spool: Spool
    longest: int
    sockets: ClickSockets
    _pending: list[tuple[list[bytes], asyncio.Future[int]]] = field(default_factory=list)
    _clients: set[asyncio.Task[None]] = field(default_factory=set)
    #: Those for which nothing is being stored; first the one for which that has been so for longest.
    _quiet: dict[asyncio.Task[None], Connection] = field(default_factory=dict)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _is_ending: bool = False

    def __post_init__(self) -> None:
        self.disk = RetryingThread(f"port {self.spool.port}: the disk", "clients wait")

    async def accept(self, listening: socket.socket) -> None:
        """Serve whoever connects, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listening)
            except OSError as error:
                say(f"port {self.spool.port}: a client cannot be accepted ({error}); it is tried again")
                await asyncio.sleep(RETRY_SECONDS)
                continue
            connection = Connection(accepted, self.longest, self.sockets.answers)
            # Kept in _clients, or refused at once.
            asyncio.create_task(self._serve(connection))  # noqa: RUF006

    async def _serve(self, connection: Connection) -> None:
        """Store a client's lines and answer, until it or the receiver ends."""
        task = asyncio.current_task()
        assert task is not None
        most = self.sockets.max_clients
        if len(self._clients) >= most and not self._drop_the_quietest():
            self._end(connection, f"refused: lines of {most} clients are being stored (max_clients); try later")
            return
        self._clients.add(task)
        last_word = ""
        try:
            await self._talk(connection, task)
        except TimeoutError:
            idle = f"{self.sockets.idle_seconds:g} s (idle_seconds)"
            last_word = f"dropped: no whole line, or its last answer not read, for {idle}"
        except asyncio.CancelledError:
            last_word = connection.dropped_for or ""
        except NotStoredError:
            say(f"{self._named(connection)}: its last lines are not stored, as the receiver ended before the disk did")
        finally:
            self._clients.discard(task)
            self._end(connection, last_word)

    async def _talk(self, connection: Connection, task: asyncio.Task[None]) -> None:
        is_over = False
        while not is_over and not self._is_ending:
            try:
                lines, is_over = await self._quietly(connection, task, connection.next_lines())
            except asyncio.CancelledError:
                if connection.dropped_for:
                    raise
                task.uncancel()  # by end, which waits for what follows
                break
            await self._store_for(connection, lines)
        if not is_over:
            await self._store_for(connection, connection.lines_here())
        await self._quietly(connection, task, connection.answered())

    async def _quietly(self, connection: Connection, task: asyncio.Task[None], waiting: Awaitable[T]) -> T:
        """Wait for a client, which meanwhile may be the quietest.

        Raises:
            TimeoutError: after idle_seconds.
        """
        self._quiet[task] = connection
        try:
            async with asyncio.timeout(self.sockets.idle_seconds):
                return await waiting
        finally:
            self._quiet.pop(task, None)

    async def _store_for(self, connection: Connection, lines: list[bytes]) -> None:
        if lines:
            last_id = await self.store(lines)
            connection.stored += len(lines)
            connection.answer(f"stored {connection.stored} {last_id}")

    def _named(self, connection: Connection) -> str:
        return f"port {self.spool.port}: {connection.client}, {connection.stored} lines stored"

    def _end(self, connection: Connection, last_word: str) -> None:
        """End the connection; what the client may not have noticed is in the log."""
        connection.close(last_word)
        if last_word:
            unfinished = connection.unfinished_bytes
            left = f", {unfinished} bytes of a line without end not" if unfinished else ""
            say(f"{self._named(connection)}{left}: {last_word}")
        elif connection.broke_off and connection.stored:
            say(
                f"{self._named(connection)}: broke off ({connection.broke_off.strerror}); all that came is stored; "
                "if it reads no answers, what it sent last did not come: set answers = false for such clients"
            )

    def _drop_the_quietest(self) -> bool:
        """Take its place from the client that has sent no whole line for longest; whether there is one.

        Nothing that was acknowledged is lost: of a client in whose lines the disk is at work, none is dropped.
        """
        if not self._quiet:
            return False
        task, connection = next(iter(self._quiet.items()))
        del self._quiet[task]
        self._clients.discard(task)
        most = self.sockets.max_clients
        connection.dropped_for = f"dropped: {most} clients are connected (max_clients), and this one was quiet longest"
        task.cancel()
        return True

    async def store(self, lines: list[bytes]) -> int:
        """Wait until the lines are durable; returns the sequence id of the last one.

        Raises:
            NotStoredError: if the receiver ends before.
        """
        stored: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._pending.append((lines, stored))
        self._wake.set()
        return await stored

    def begin(self) -> asyncio.Task[None]:
        """Begin to store; the task ends with ``end``, or has failed."""
        self._storing = asyncio.create_task(self._keep_storing())
        return self._storing

    async def _keep_storing(self) -> None:
        while not self._is_ending or self._pending or self._clients:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), LOOK_SECONDS)
            self._wake.clear()
            group, self._pending = self._pending, []
            if group:
                await self._store_group(group)
            await self.disk.tried(self.spool.roll_if_due)

    async def _store_group(self, group: Sequence[tuple[list[bytes], asyncio.Future[int]]]) -> None:
        lines = [line for of_client, _ in group for line in of_client]
        while not await self.disk.tried(partial(self.spool.store, lines)):
            if self._is_ending:
                for _, stored in group:
                    if not stored.done():
                        stored.set_exception(NotStoredError())
                return
            await asyncio.sleep(RETRY_SECONDS)
        last_id = self.spool.next_id - 1 - len(lines)
        for of_client, stored in group:
            last_id += len(of_client)
            if not stored.done():  # its client may be gone
                stored.set_result(last_id)

    async def end(self) -> None:
        """Answer what has come, read no more, and give the last file its name.

        Raises:
            OSError: if the disk refuses; the next start completes the file.
        """
        self._is_ending = True
        self._wake.set()
        for task in list(self._quiet):
            task.cancel()
        if self._clients:
            await asyncio.wait(list(self._clients), timeout=PATIENCE_SECONDS)
        for task in list(self._clients):
            task.cancel()
        await self._storing
        await self.disk.done(self.spool.roll)
        self.disk.end()


@dataclass
class Receiver:
    """All ports of one source, and the hours that they close; ``clock`` and ``sync`` are those of ``Spool``."""

    settings: Settings
    source: Source
    clock: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    sync: Callable[[int], None] = os.fsync
    readers: list[PortReader] = field(default_factory=list)

    def __post_init__(self) -> None:
        settings, name = self.settings, self.source.name
        #: Where lines are stored: the landing zone, if that is on a disk.
        self.folder = settings.landing if is_on_disk(settings.landing) else settings.received
        self.forwarder: Forwarder | None = None
        if self.folder != settings.landing:
            self.forwarder = Forwarder(settings, name)
            landing = f"{name}: the landing zone {settings.landing}"
            self._store = RetryingThread(landing, "what was acknowledged waits on this disk")

    @property
    def sockets(self) -> ClickSockets:
        """Its settings."""
        assert self.source.sockets is not None
        return self.source.sockets

    def prepare(self) -> None:
        """Complete what an earlier receiver left unfinished, and close its hours.

        Raises:
            OSError: if the disk cannot be read or written.
        """
        folder, name, sockets = self.folder, self.source.name, self.sockets
        ports: Collection[int] | None = sockets.ports
        if self.forwarder:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # The folder is this receiver's own: also what came by ports that it has no more goes on.
            for port in ports_left(folder, name) - set(sockets.ports):
                self._recover(port)
            ports = None
        for port in sockets.ports:
            spool = self._recover(port)
            longest = self.source.max_line_bytes + SPARE_BYTES
            self.readers.append(PortReader(spool, longest, sockets))
        for hour in open_hours(folder, name, ports, self.clock()):
            close_hour(folder, name, hour)

    def _recover(self, port: int) -> Spool:
        sockets = self.sockets
        spool = Spool(
            self.folder, self.source.name, port, sockets.roll_seconds, sockets.roll_bytes, self.clock, self.sync
        )
        for file in spool.recover():
            say(f"completed {file.name}, which was left unfinished")
        return spool

    async def run(self, told_to_end: asyncio.Event) -> None:
        """Receive until asked to end.

        Raises:
            UsageError: if a port is taken, or there are no locks for a landing zone in a store.
            OSError: if the disk, or the store, refuses the last files.
            ClickmillError: if another receiver has the source.
        """
        if self.forwarder:
            # Before anything is acknowledged; without an answer lines are stored all the same.
            with suppress(TimeoutError):
                await asyncio.wait_for(self._store.tried(self.forwarder.take), LOCK_SECONDS)
        async with AsyncExitStack() as stack:
            for reader in self.readers:
                for listening in self._listen(reader):
                    stack.push_async_callback(_cancelled, asyncio.create_task(reader.accept(listening)), listening)
            tasks = [reader.begin() for reader in self.readers]
            tasks.append(asyncio.create_task(self._close_hours(told_to_end)))
            if self.forwarder:
                tasks.append(asyncio.create_task(self._keep_forwarding(self.forwarder, told_to_end)))
            ending = asyncio.create_task(told_to_end.wait())
            ports = ", ".join(str(port) for port in self.sockets.ports)
            say(f"receiving {self.source.name} on {self.sockets.host}, ports {ports}")
            # None of the tasks ends by itself: one that does has failed.
            await asyncio.wait([ending, *tasks], return_when=asyncio.FIRST_COMPLETED)
            told_to_end.set()
            await ending
        # No new clients from here on.
        ended = await asyncio.gather(*(reader.end() for reader in self.readers), *tasks, return_exceptions=True)
        for error in ended:
            if isinstance(error, BaseException):
                raise error
        if self.forwarder:
            await self._forward_the_last(self.forwarder)
        say(f"{self.source.name}: all that was received is stored and in files")

    def _listen(self, reader: PortReader) -> list[socket.socket]:
        """Listening sockets, one for each address that the host has.

        Raises:
            UsageError: if the port is taken, or the host is none.
        """
        host, port = self.sockets.host, reader.spool.port
        with ExitStack() as opened:
            try:
                listening = [
                    opened.enter_context(socket.create_server(address[:2], family=family, backlog=BACKLOG))
                    for family, address in sorted(
                        {
                            (address_info[0], address_info[4])
                            for address_info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                        }
                    )
                ]
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    problem = "is taken: end what listens there, or give the source other ports"
                else:
                    problem = f"cannot be listened on ({error.strerror}): check host and ports"
                raise UsageError(f"port {port} of {host} {problem} in [sources.{self.source.name}.sockets]") from None
            opened.pop_all()
        for each in listening:
            each.setblocking(False)
        return listening

    async def _close_hours(self, told_to_end: asyncio.Event) -> None:
        """Close each hour once it is over and all of its lines are in files."""
        hour = Hour.containing(self.clock())
        while not told_to_end.is_set():
            await asyncio.sleep(LOOK_SECONDS)
            now = Hour.containing(self.clock())
            if now <= hour or await self._close(hour, now):
                hour = now

    async def _close(self, hour: Hour, now: Hour) -> bool:
        """Whether the disk has let all lines of the hour be in files, and the hour be closed."""
        for reader in self.readers:
            if not await reader.disk.tried(partial(reader.spool.begin_hour, now)):
                return False
        return await self.readers[0].disk.tried(partial(close_hour, self.folder, self.source.name, hour))

    async def _keep_forwarding(self, forwarder: Forwarder, told_to_end: asyncio.Event) -> None:
        while not told_to_end.is_set():
            taken = await self._store.tried(forwarder.forward)
            with suppress(TimeoutError):
                await asyncio.wait_for(told_to_end.wait(), LOOK_SECONDS if taken else RETRY_SECONDS)

    async def _forward_the_last(self, forwarder: Forwarder) -> None:
        try:
            if self._store.is_refused:
                say(f"{self.source.name}: what was acknowledged waits on this disk for the next start")
            else:
                await self._store.done(forwarder.forward)
        finally:
            await self._store.done(forwarder.let_go)
            self._store.end()


async def _cancelled(accepting: asyncio.Task[None], listening: socket.socket) -> None:
    accepting.cancel()
    with suppress(asyncio.CancelledError):
        await accepting
    listening.close()


def say(message: str) -> None:
    """Leave a line in the log."""
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {message}", flush=True)

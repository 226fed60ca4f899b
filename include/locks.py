"""Locks between jobs: files, for the jobs of one machine or one shared disk; or PostgreSQL's, for those of several.

Whichever it is, a lock ends with the process that holds it, however that ends.
"""

from __future__ import annotations

import fcntl
import json
import logging
import math
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Protocol
from uuid import uuid4
from zlib import crc32

from filelock import FileLock, Timeout

from include.errors import ClickmillError, LockHeldError, LockLostError, UsageError
from include.home import HomeFolders
from include.postgres import required_address
from include.storage import is_on_disk, write_once, write_whole

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection
    from psycopg2.extensions import cursor as Cursor

log = logging.getLogger("clickmill")

#: The environment variable with the database's address.
VARIABLE = "CLICKMILL_LOCKS"
_MOMENT = "%Y-%m-%d %H:%M:%S"
#: Their locks are files too, beside their checkpoints and spools.
_OF_STREAMS = ("stream-", "receiver-")
#: How the client asks after a silent server, and the server after a silent client, which is gone after 25 s. What the
#: client has asked is answered within 10 s, or it is the client that gives up: sooner than the server.
_KEEP_ALIVE = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
_SERVER_SIDE = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
#: The database's or the role's own limits would end what waits, or a connection that is silent for long. And the server
#: is to see that a client has gone that waits: it would keep its place.
_NO_LIMITS = (
    "SELECT set_config(name, CASE name WHEN 'client_connection_check_interval' THEN '2s' ELSE '0' END, false) "
    "FROM pg_settings WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_session_timeout', "
    "'transaction_timeout', 'client_connection_check_interval')"
)
#: PostgreSQL keeps so many bytes of what a connection says that it is.
_MOST_BYTES = 63
#: How long a job sleeps between two looks at a lock: so a signal ends it, and no limit is needed.
_PAUSE_SECONDS = 0.05
#: After so long it says that it waits, and for whom; and then so often.
_WARNED_AFTER_SECONDS, _WARNED_EVERY_SECONDS = 1, 60
#: In the data: where its locks are. Jobs that look in two places would not wait for each other.
_KEPT_IN = ("run", "locks", "kept-in")


@dataclass(frozen=True)
class Holder:
    """Who holds a lock: a process of a host, since a moment in UTC, and what it runs."""

    name: str
    host: str
    pid: int
    since: str
    runs: str

    @classmethod
    def here(cls, name: str) -> Holder:
        """This process, from now on."""
        since = f"{datetime.now(UTC):{_MOMENT}}"
        return cls(name, socket.gethostname(), os.getpid(), since, _running_program(os.environ))

    def __str__(self) -> str:
        """In words."""
        return f"{self.runs} (process {self.pid} of {self.host}, since {self.since} UTC)"


class Held(Protocol):
    """A lock that this process has taken."""

    def require(self) -> None:
        """See to it that it is still held, before something is written.

        Raises:
            LockLostError: if it is not.
        """


class Locks(Protocol):
    """The locks of the homes that share their data."""

    def held(self, name: str, patience_seconds: float | None = None) -> AbstractContextManager[Held]:
        """The lock of this name, until the end; waited for as long as it takes, unless there is a limit.

        Raises:
            LockHeldError: if another process has it, and keeps it.
        """

    def holders(self) -> list[Holder]:
        """Who holds which lock, by its name."""

    def waiters(self) -> list[Holder]:
        """Who waits for which lock, and since when: by its name, and whoever came first before the others."""


def locks_of(home: HomeFolders) -> Locks:
    """The locks of a home's data.

    Raises:
        UsageError: if they would be files, and the data is in an object store, which has no locks; or if other jobs of
            this data have theirs elsewhere.
    """
    if home.locks_database is not None:
        database = required_address(VARIABLE, home.locks_database).get("dbname", "of the user's name")
        _require_one_place(home.data, f"the PostgreSQL database {database}")
        return _DatabaseLocks(home.locks_database, str(home.data))
    if not is_on_disk(home.data):
        raise UsageError(
            f"the data is in {home.data}, and an object store has no locks: set {VARIABLE} to a PostgreSQL "
            "database that all machines reach, such as postgresql://clickmill:…@host/locks"
        )
    _require_one_place(home.data, "files")
    return _FileLocks(home.locks)


@contextmanager
def files_locked(folder: Path) -> Iterator[None]:
    """Until the end no other process of this machine has the files of this folder locked so.

    For files that people write too, of whichever home: it leaves no other file among them.

    Raises:
        OSError: if the folder cannot be looked at.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _require_one_place(data: Path, here: str) -> None:
    mark = data.joinpath(*_KEPT_IN)
    if not mark.exists():
        mark.parent.mkdir(parents=True, exist_ok=True)
        write_once(mark, f"{here}\n".encode())
    there = mark.read_text(encoding="utf-8").strip()
    if there != here:
        raise UsageError(
            f"the locks of {data} are kept in {there}, and by {VARIABLE} of this process in {here}: jobs would not "
            f"wait for each other. Set {VARIABLE} as for the other jobs; or end all jobs and services, then "
            f"remove {mark}"
        )


class _StaysHeld:
    """A lock of a file: it is lost with the process only."""

    def require(self) -> None:
        """It is."""


@dataclass(frozen=True)
class _FileLocks:
    folder: Path

    @contextmanager
    def held(self, name: str, patience_seconds: float | None = None) -> Iterator[Held]:
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / f"{name}.lock")
        self._take(lock, name, patience_seconds)
        try:
            holder = json.dumps(asdict(Holder.here(name))).encode()
            with suppress(OSError):  # who it is, is only told
                write_whole(self._holder_file(name), holder)
            yield _StaysHeld()
        finally:
            lock.release()

    def holders(self) -> list[Holder]:
        holders = []
        for file in sorted(self.folder.glob("*.lock")):
            if file.name.startswith(_OF_STREAMS):
                # Whoever starts one does not wait for an instant, as a job does.
                continue
            if _is_locked(file):
                holders.append(self._holder(file.stem) or Holder(file.stem, "?", 0, "?", "unknown"))
        return holders

    def waiters(self) -> list[Holder]:
        tickets = sorted(self.folder.glob("*.queue/*.ticket"))
        return [
            _read(ticket.with_suffix(".json")) or Holder(ticket.parent.stem, "?", 0, "?", "unknown")
            for ticket in tickets
            if _is_locked(ticket)
        ]

    def _take(self, lock: FileLock, name: str, patience_seconds: float | None) -> None:
        queue = self.folder / f"{name}.queue"
        if not any(queue.glob("*.ticket")) and _is_taken(lock):
            return
        if patience_seconds == 0:
            raise _held_by(name, self._holder(name))
        wait = _Wait(name, patience_seconds, lambda: self._holder(name))
        with _ticket(queue, Holder.here(name)) as ticket:
            while not (_is_first(ticket) and _is_taken(lock)):
                wait.go_on()
                time.sleep(_PAUSE_SECONDS)

    def _holder(self, name: str) -> Holder | None:
        """Who took it last."""
        return _read(self._holder_file(name))

    def _holder_file(self, name: str) -> Path:
        return self.folder / f"{name}.json"


def _read(file: Path) -> Holder | None:
    try:
        return Holder(**json.loads(file.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def _is_taken(lock: FileLock) -> bool:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    return True


def _is_locked(file: Path) -> bool:
    """Whether another process, or this one, has locked it."""
    lock = FileLock(file)
    try:
        return not _is_taken(lock)
    finally:
        lock.release()


@contextmanager
def _ticket(queue: Path, holder: Holder) -> Iterator[Path]:
    """A place in a queue, by the moment of coming; locked as long as its process lives, else it counts for nothing."""
    queue.mkdir(exist_ok=True)
    ticket = queue / f"{time.time_ns():020d}-{uuid4().hex}.ticket"
    # Seen by others once it is locked.
    hidden = ticket.with_name(f".{ticket.name}")
    lock = FileLock(hidden)
    lock.acquire()
    try:
        content = json.dumps(asdict(holder)).encode()
        write_whole(ticket.with_suffix(".json"), content)
        hidden.rename(ticket)
        yield ticket
    finally:
        _remove_ticket(ticket)
        lock.release()


def _is_first(ticket: Path) -> bool:
    """Whether nobody who lives came before; the tickets of those who do not are removed."""
    for other in sorted(ticket.parent.glob("*.ticket")):
        if other >= ticket:
            break
        if _is_locked(other):
            return False
        _remove_ticket(other)
    return True


def _remove_ticket(ticket: Path) -> None:
    ticket.unlink(missing_ok=True)
    ticket.with_suffix(".json").unlink(missing_ok=True)


class _Wait:
    """One wait for a lock: it says whom it waits for, and gives up when its time is over."""

    def __init__(self, name: str, patience_seconds: float | None, holder: Callable[[], Holder | None]) -> None:
        self._name, self._holder, self._begun = name, holder, time.monotonic()
        self._patience = math.inf if patience_seconds is None else patience_seconds
        self._warning_due = self._begun + _WARNED_AFTER_SECONDS

    def go_on(self) -> None:
        """Say so, if it is time to.

        Raises:
            LockHeldError: if it takes too long.
        """
        waited = time.monotonic() - self._begun
        if waited >= self._patience:
            raise _held_by(self._name, self._holder())
        if time.monotonic() >= self._warning_due:
            self._warning_due += _WARNED_EVERY_SECONDS
            holder = self._holder() or "another process"
            log.warning("waits for the lock %s, for %.0f s now; held by %s", self._name, waited, holder)


@dataclass(frozen=True)
class _DatabaseLocks:
    """Advisory locks, each of a connection of its own: PostgreSQL frees it when the connection ends.

    Not to be reached through a pool that gives a connection to others between transactions.
    """

    address: str = field(repr=False)
    data: str

    @contextmanager
    def held(self, name: str, patience_seconds: float | None = None) -> Iterator[Held]:
        connection = self._connect()
        try:
            self._take(connection, name, patience_seconds)
            lock = _OfConnection(connection, name)
            try:
                yield lock
            finally:
                lock.release()
        finally:
            connection.close()

    def holders(self) -> list[Holder]:
        return self._those(granted=True)

    def waiters(self) -> list[Holder]:
        return self._those(granted=False)

    def _those(self, *, granted: bool) -> list[Holder]:
        connection = self._connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid) "
                    "WHERE locktype = 'advisory' AND granted = %s AND objsubid = 2 AND classid = %s::bigint::oid "
                    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
                    "ORDER BY split_part(application_name, '|', 1), waitstart, 1",
                    [granted, crc32(self.data.encode())],
                )
                return [_holder_of(name) for (name,) in cursor.fetchall()]
        finally:
            connection.close()

    def _connect(self) -> Connection:
        import psycopg2

        try:
            connection = psycopg2.connect(self.address, options=_SERVER_SIDE, connect_timeout=10, **_KEEP_ALIVE)
        except psycopg2.OperationalError as error:
            raise ClickmillError(
                f"the database of the locks ({VARIABLE}) cannot be reached: {_in_a_line(error)}; "
                "nothing was done: run the job again when it can"
            ) from None
        connection.autocommit = True
        return connection

    def _take(self, connection: Connection, name: str, patience_seconds: float | None) -> None:
        import psycopg2

        # As signed numbers, which is what PostgreSQL takes.
        of_lock = [number - (number >> 31 << 32) for number in (crc32(self.data.encode()), crc32(name.encode()))]
        wait = _Wait(
            name, patience_seconds, lambda: next((holder for holder in self.holders() if holder.name == name), None)
        )
        naming = "SELECT set_config('application_name', %s, false)"
        try:
            with connection.cursor() as cursor:
                cursor.execute(_NO_LIMITS)
                cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", of_lock)
                if cursor.fetchall() != [(True,)]:
                    cursor.execute(naming, [_connection_name(Holder.here(name))])
                    _await(cursor, of_lock, wait)
                cursor.execute(naming, [_connection_name(Holder.here(name))])
        except psycopg2.Error as error:
            raise ClickmillError(
                f"the lock {name} cannot be had from the database of {VARIABLE}: {_in_a_line(error)}; "
                "nothing was done: run the job again when it can be reached"
            ) from None


def _await(cursor: Cursor, of_lock: Sequence[int], wait: _Wait) -> None:
    """Wait for a lock as PostgreSQL gives it, to whoever came first; in a thread, since no signal gets into libpq."""
    errors: list[Exception] = []
    # Not whether the thread lives: join() takes it for ended when a signal's handler raises something meanwhile.
    ended = Event()

    def take() -> None:
        try:
            cursor.execute("SELECT pg_advisory_lock(%s, %s)", of_lock)
        except Exception as error:
            errors.append(error)
        ended.set()

    Thread(target=take, daemon=True).start()
    try:
        while not ended.wait(_PAUSE_SECONDS):
            wait.go_on()
    finally:
        if not ended.is_set():
            cursor.connection.cancel()
            ended.wait()
    if errors:
        raise errors[0]


class _OfConnection:
    def __init__(self, connection: Connection, name: str) -> None:
        self._connection, self._name = connection, name
        #: Other threads of the job may ask about it while this one gives it back.
        self._asking = Lock()
        self._is_released = False

    def require(self) -> None:
        import psycopg2

        with self._asking:
            if self._is_released:
                return
            try:
                with self._connection.cursor() as cursor:
                    cursor.execute("SELECT 1")
            except psycopg2.Error as error:
                raise LockLostError(
                    f"the lock {self._name} is lost with its connection to the database of {VARIABLE}: "
                    f"{_in_a_line(error)}; nothing more is written, since another job may have it: run this one again"
                ) from None

    def release(self) -> None:
        """It is free immediately: the lock of a connection that is closed PostgreSQL gives back a moment later."""
        import psycopg2

        with self._asking:
            self._is_released = True
            with suppress(psycopg2.Error), self._connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock_all()")


def _held_by(name: str, holder: Holder | None) -> LockHeldError:
    return LockHeldError(f"the lock {name} is held by {holder or 'another process'}")


def _connection_name(holder: Holder) -> str:
    """As the name of a connection, in which the longest names of tables leave room for host, process and moment."""
    since = datetime.strptime(holder.since, _MOMENT).replace(tzinfo=UTC)
    name = f"{holder.name}|{holder.pid:x}|{int(since.timestamp()):x}|{holder.host}|{holder.runs}"
    return name.encode()[:_MOST_BYTES].decode(errors="ignore")


def _holder_of(connection_name: str) -> Holder:
    name, pid, since, host, runs = (*connection_name.split("|", 4), "", "", "", "")[:5]
    try:
        moment = f"{datetime.fromtimestamp(int(since, 16), UTC):{_MOMENT}}"
        return Holder(name, host, int(pid, 16), moment, runs or "a job")
    except ValueError:  # it has the lock, and has not said so yet
        return Holder(name, host or "?", 0, "?", "a job")


def _running_program(environment: Mapping[str, str]) -> str:
    """The Airflow task, or else the program, of clickmill its command: few bytes are kept."""
    task = environment.get("AIRFLOW_CTX_TASK_ID")
    if task:
        return f"{environment.get('AIRFLOW_CTX_DAG_ID')}.{task}"
    program = Path(sys.argv[0])
    name = program.parent.name if program.stem == "__main__" else program.stem
    return sys.argv[1] if name == "clickmill" and len(sys.argv) > 1 else name


def _in_a_line(error: Exception) -> str:
    return " ".join(str(error).split())

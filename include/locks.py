"""Locks between jobs: files, for the jobs of one machine or one shared disk; or PostgreSQL's, for those of several.

Whichever it is, a lock ends with the process that holds it, however that ends.
"""

from __future__ import annotations

import json
import math
import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Protocol
from zlib import crc32

from filelock import FileLock, Timeout

from include.errors import ClickmillError, LockHeldError, LockLostError, UsageError
from include.home import HomeFolders
from include.postgres import required_address
from include.storage import is_on_disk, write_once, write_whole

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection
    from psycopg2.extensions import cursor as Cursor

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
#: The database's or the role's own limits would end what waits, or a connection that is silent for long.
_NO_LIMITS = (
    "SELECT set_config(name, '0', false) FROM pg_settings "
    "WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_session_timeout', 'transaction_timeout')"
)
#: PostgreSQL keeps so many bytes of what a connection says that it is.
_MOST_BYTES = 63
#: How long a job sleeps between two looks at a lock of the database: so a signal ends it, and no limit is needed.
_PAUSE_SECONDS = 0.05
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
        return cls(name, socket.gethostname(), os.getpid(), since, _what_runs(os.environ))

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
        lock = FileLock(self.folder / f"{name}.lock", timeout=-1 if patience_seconds is None else patience_seconds)
        try:
            lock.acquire()
        except Timeout:
            raise _held_by(name, self._holder(name)) from None
        try:
            said = json.dumps(asdict(Holder.here(name))).encode()
            with suppress(OSError):  # who it is, is only told
                write_whole(self._holder_file(name), lambda file: file.write(said))
            yield _StaysHeld()
        finally:
            lock.release()

    def holders(self) -> list[Holder]:
        found = []
        for file in sorted(self.folder.glob("*.lock")):
            if file.name.startswith(_OF_STREAMS):
                # Whoever starts one does not wait for an instant, as a job does.
                continue
            try:
                with FileLock(file, timeout=0):
                    pass
            except Timeout:
                found.append(self._holder(file.stem) or Holder(file.stem, "?", 0, "?", "unknown"))
        return found

    def _holder(self, name: str) -> Holder | None:
        """Who took it last."""
        try:
            return Holder(**json.loads(self._holder_file(name).read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def _holder_file(self, name: str) -> Path:
        return self.folder / f"{name}.json"


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
        connection = self._connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid) "
                    "WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid = %s::bigint::oid "
                    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY 1",
                    [crc32(self.data.encode())],
                )
                return [_holder_of(said) for (said,) in cursor.fetchall()]
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
        deadline = math.inf if patience_seconds is None else time.monotonic() + patience_seconds
        try:
            with connection.cursor() as cursor:
                cursor.execute(_NO_LIMITS)
                while not _is_taken(cursor, of_lock):
                    if time.monotonic() >= deadline:
                        raise _held_by(name, next((one for one in self.holders() if one.name == name), None))
                    time.sleep(_PAUSE_SECONDS)
                cursor.execute("SELECT set_config('application_name', %s, false)", [_said(Holder.here(name))])
        except psycopg2.Error as error:
            raise ClickmillError(
                f"the lock {name} cannot be had from the database of {VARIABLE}: {_in_a_line(error)}; "
                "nothing was done: run the job again when it can be reached"
            ) from None


def _is_taken(cursor: Cursor, of_lock: Sequence[int]) -> bool:
    cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", of_lock)
    return bool(cursor.fetchall() == [(True,)])


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


def _said(holder: Holder) -> str:
    """As the name of a connection, in which the longest names of tables leave room for host, process and moment."""
    since = datetime.strptime(holder.since, _MOMENT).replace(tzinfo=UTC)
    said = f"{holder.name}|{holder.pid:x}|{int(since.timestamp()):x}|{holder.host}|{holder.runs}"
    return said.encode()[:_MOST_BYTES].decode(errors="ignore")


def _holder_of(said: str) -> Holder:
    name, pid, since, host, runs = (*said.split("|", 4), "", "", "", "")[:5]
    try:
        moment = f"{datetime.fromtimestamp(int(since, 16), UTC):{_MOMENT}}"
        return Holder(name, host, int(pid, 16), moment, runs or "a job")
    except ValueError:  # it has the lock, and has not said so yet
        return Holder(name, host or "?", 0, "?", "a job")


def _what_runs(environment: Mapping[str, str]) -> str:
    """The Airflow task, or else the program."""
    task = environment.get("AIRFLOW_CTX_TASK_ID")
    if task:
        return f"{environment.get('AIRFLOW_CTX_DAG_ID')}.{task}"
    program = Path(sys.argv[0])
    return program.parent.name if program.stem == "__main__" else program.stem


def _in_a_line(error: Exception) -> str:
    return " ".join(str(error).split())

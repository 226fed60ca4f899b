"""A PostgreSQL server of the tests' own, from the programs that Debian's package postgresql installs."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg2

from tests.support.ports import claimed_port

#: PostgreSQL does not run as root; Debian's package makes this account.
_ACCOUNT = "postgres"


@dataclass
class PostgresServer:
    """One server, whose superuser needs no password; empty databases are made on it."""

    data: Path
    port: int = field(default_factory=lambda: claimed_port(55432, "PostgreSQL"))

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        settings = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        self._run("pg_ctl", "start", "--wait", "-D", self.data, "-l", self.data / "log", "-o", settings)

    def stop(self) -> None:
        """End it at once, as a crash would."""
        self._run("pg_ctl", "stop", "--wait", "-D", self.data, "-m", "immediate")

    def address(self, database: str = "postgres") -> str:
        """Of one of its databases."""
        return f"postgresql://{_ACCOUNT}@127.0.0.1:{self.port}/{database}"

    def make_database(self, name: str) -> str:
        """An empty database; its address."""
        self.query("postgres", f"CREATE DATABASE {name}")
        return self.address(name)

    def query(self, database: str, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a statement; none of one that has none."""
        connection = psycopg2.connect(self.address(database))
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(sql)
                return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()

    def initialise(self) -> None:
        """Make its folder."""
        self._run("initdb", "-D", self.data, "-U", _ACCOUNT, "-A", "trust", "-E", "UTF8", "--no-sync")

    def _run(self, program: str, *arguments: object) -> None:
        as_account = ["runuser", "-u", _ACCOUNT, "--"] if getpass.getuser() == "root" else []
        # Not its output: the server that pg_ctl starts would hold it open.
        done = subprocess.run(
            [*as_account, _found(program), *map(str, arguments)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
        )  # fmt: skip
        log = self.data / "log"
        assert done.returncode == 0, f"{program}: {log.read_text() if log.exists() else done.returncode}"


def _found(program: str) -> str:
    """Debian keeps them apart by version, and out of the path."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: float(folder.parent.name))
    folders = [*map(str, reversed(versions)), os.environ["PATH"]]
    path = shutil.which(program, path=os.pathsep.join(folders))
    assert path is not None, f"no {program}: install Debian's package postgresql, as .ci/run does"
    return path


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """A running server, gone at the end."""
    with TemporaryDirectory(prefix="cm-postgres-", ignore_cleanup_errors=True) as folder:
        if getpass.getuser() == "root":
            shutil.chown(folder, _ACCOUNT)
        server = PostgresServer(Path(folder) / "data")
        server.initialise()
        server.start()
        try:
            yield server
        finally:
            server.stop()

"""One home's supervisord, and the processes that belong to its services."""

from __future__ import annotations

import fcntl
import hashlib
import http.client
import os
import time
import xmlrpc.client
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from supervisor.xmlrpc import SupervisorTransport

from ops.home import Home
from ops.services.ports import private_temp_folder

# Carried by every process of a home's services and by no other: stop ends what carries it.
MARK = "CLICKMILL_SERVICES_OF"


# A Unix socket's path holds 104 bytes on macOS and 108 on Linux; supervisord appends its pid at first.
LONGEST_SOCKET_PATH = 90


@dataclass(frozen=True)
class ServiceState:
    """One service as supervisord sees it."""

    name: str
    state: str
    pid: int


def socket_path(home: Home) -> Path:
    """Return where supervisord listens: in the home, or for a long path in a private temp folder."""
    path = home.run / "supervisor.sock"
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    name = hashlib.sha256(os.fsencode(home.path)).hexdigest()[:16] + ".sock"
    return private_temp_folder() / name


class Supervisor:
    """A connection to one home's supervisord."""

    def __init__(self, home: Home) -> None:
        self._socket = socket_path(home)

    def _call(self, method: str, *arguments: Any) -> Any:
        transport = SupervisorTransport(None, None, f"unix://{self._socket}")
        with xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport) as proxy:
            return getattr(proxy.supervisor, method)(*arguments)

    def is_up(self) -> bool:
        """Whether supervisord answers."""
        try:
            return bool(self._call("getState")["statecode"] == 1)
        except (OSError, http.client.HTTPException, xmlrpc.client.Error):
            return False

    def states(self) -> list[ServiceState]:
        """Return all services, in the order of the configuration."""
        return [
            ServiceState(str(process["name"]), str(process["statename"]), int(process["pid"]))
            for process in self._call("getAllProcessInfo")
        ]

    def state(self, name: str) -> str:
        """What supervisord says of one service, such as RUNNING."""
        return next(service.state for service in self.states() if service.name == name)

    def start(self, name: str) -> None:
        """Start one service, not waiting for it."""
        self._call("startProcess", name, False)

    def stop(self, name: str) -> None:
        """End one service if it runs, and wait for it."""
        with suppress(xmlrpc.client.Fault):  # it does not run
            self._call("stopProcess", name, True)

    def stop_all(self) -> None:
        """Signal every service, all at once, not waiting."""
        self._call("stopAllProcesses", False)

    def shut_down(self) -> None:
        """End supervisord, which first ends what still runs."""
        self._call("shutdown")


def marked_processes(home: Home, mark: str = MARK) -> list[psutil.Process]:
    """Return the live processes of this home that carry the mark, its services', and no others."""
    mine = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    processes = []
    for process in psutil.process_iter():
        if process.pid in mine:
            continue
        with suppress(psutil.Error, OSError):
            if process.environ().get(mark) == str(home.path) and process.status() != psutil.STATUS_ZOMBIE:
                processes.append(process)
    return processes


def end_marked(home: Home, patience: float, mark: str = MARK) -> int:
    """End what carries the home's mark, first asked, then killed; return how many processes that were."""
    count = len(marked_processes(home, mark))
    for signal_name in ("terminate", "kill"):
        processes = marked_processes(home, mark)
        for process in processes:
            with suppress(psutil.Error):
                getattr(process, signal_name)()
        deadline = time.monotonic() + patience
        while marked_processes(home, mark) and time.monotonic() < deadline:
            time.sleep(0.1)
    return count


@contextmanager
def home_lock(home: Home) -> Iterator[None]:
    """Let a second start or stop of the same home wait for the first."""
    with (home.run / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

"""Which services a home has, and their end."""

from __future__ import annotations

import http.client
import time
import xmlrpc.client
from contextlib import suppress
from pathlib import Path

from include.errors import ClickmillError
from ops.home import Home, find_home
from ops.services.supervisor import ServiceState, Supervisor, end_marked, home_lock, marked_processes, socket_path


def stop_home(home: Home, patience: float = 40) -> bool:
    """End what runs for the home; the caller holds the home's lock."""
    supervisor = Supervisor(home)
    was_up = bool(marked_processes(home))
    if supervisor.is_up():
        deadline = time.monotonic() + patience
        with suppress(OSError, http.client.HTTPException, xmlrpc.client.Error):
            # All at once first: supervisord's own shutdown ends one service after the other.
            supervisor.stop_all()
            while time.monotonic() < deadline and any(service.pid for service in supervisor.states()):
                time.sleep(0.1)
            supervisor.shut_down()
            while time.monotonic() < deadline and supervisor.is_up():
                time.sleep(0.05)
    end_marked(home, patience=5)
    left = marked_processes(home)
    if left:
        raise ClickmillError(f"cannot end process {', '.join(str(process.pid) for process in left)} of {home.path}")
    pid_file = home.run / "supervisord.pid"
    for leftover in (socket_path(home), home.service_file, home.spark_remote_file, home.broker_file, pid_file):
        leftover.unlink(missing_ok=True)
    return was_up


def stop(home: Path | str | None = None) -> bool:
    """End exactly the services of a home, wait for them, and return whether there were any."""
    place = find_home(home)
    if not place.run.is_dir():
        return False
    with home_lock(place):
        return stop_home(place)


def status(home: Path | str | None = None) -> list[ServiceState]:
    """Return the services that a home has, [] when none run."""
    place = find_home(home)
    supervisor = Supervisor(place)
    return supervisor.states() if place.run.is_dir() and supervisor.is_up() else []

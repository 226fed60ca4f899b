"""Services that are not always there: Kafka, the receiver of clicks."""

from __future__ import annotations

import time
from collections.abc import Callable

from ops.home import Home
from ops.services.logs import failure
from ops.services.running import (
    running_ports,
)
from ops.services.stop import status
from ops.services.supervisor import Supervisor


def start_beside(home: Home, name: str, patience: float, answers: Callable[[], bool] = lambda: True) -> None:
    """Start such a service, and wait until it is up and answers.

    Raises:
        ClickmillError: if no services run, or it does not come up; it is ended then.
    """
    running_ports(home)
    supervisor = Supervisor(home)
    if not runs_beside(home, name):
        supervisor.start(name)
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        state = supervisor.state(name)
        if state == "RUNNING" and answers():
            return
        if state in ("BACKOFF", "EXITED", "FATAL"):
            break
        time.sleep(0.2)
    supervisor.stop(name)
    raise failure(home, name, "did not start")


def runs_beside(home: Home, name: str) -> bool:
    """Whether such a service runs."""
    return any(service.name == name and service.state == "RUNNING" for service in status(home.path))


def stop_beside(home: Home, name: str) -> None:
    """End such a service; nothing happens if it, or all, do not run."""
    if status(home.path):
        Supervisor(home).stop(name)

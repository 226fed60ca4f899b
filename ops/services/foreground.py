"""The services in the foreground, for a container or systemd."""

from __future__ import annotations

import http.client
import signal
import time
import xmlrpc.client
from contextlib import suppress
from pathlib import Path

from include.errors import ClickmillError
from ops.home import Home
from ops.services.logs import failure
from ops.services.start import start
from ops.services.stop import stop
from ops.services.supervisor import Supervisor

# How often `run` looks whether supervisord still keeps the services up.
WATCH_SECONDS = 5.0


def _watch(home: Home) -> None:
    """Return only by raising: when supervisord is gone, or has given a service up."""
    supervisor = Supervisor(home)
    while True:
        time.sleep(WATCH_SECONDS)
        try:
            lost = [service.name for service in supervisor.states() if service.state == "FATAL"]
        except (OSError, http.client.HTTPException, xmlrpc.client.Error):
            raise ClickmillError(f"supervisord has ended; see {home.logs / 'supervisord.log'}") from None
        if lost:
            raise failure(home, lost[0], "ended again and again")


def run(home: Path | str | None = None) -> None:
    """Start the services, stay until told to end, by SIGTERM or SIGINT, then end them.

    For a container's main process, and for systemd: both restart what fails.

    Raises:
        ClickmillError: when they do not start, or one of them does not stay up; all have been ended.
        KeyboardInterrupt: when told to end while they start; all have been ended.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    services = start(home)
    try:
        # Without the password: a container engine keeps what is printed here.
        print(f"services are up: Airflow {services.airflow_url}, home {services.home}", flush=True)
        with suppress(KeyboardInterrupt):
            _watch(Home(services.home))
    finally:
        print("ending the services", flush=True)
        stop(services.home)

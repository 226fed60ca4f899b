"""Whether the services do their work."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ops.home import Home, find_home
from ops.services.logs import failure
from ops.services.programs import MIGRATION, SPARK, programs_of
from ops.services.running import (
    Ports,
    running_ports,
)
from ops.services.supervisor import Supervisor


def is_answered(port: int) -> bool:
    """Whether something accepts connections on the port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def airflow_health(port: int) -> dict[str, Any]:
    """Return Airflow's own health report, {} while there is none."""
    import httpx  # its 0.1 s are spared who does not ask, such as `env` and `stop`

    url = f"http://127.0.0.1:{port}/api/v2/monitor/health"
    try:
        # No proxy: the shell's http_proxy is for the world outside. No certificates, which take 20 ms to load.
        health = httpx.get(url, timeout=5, trust_env=False, verify=False).raise_for_status().json()
    except (httpx.HTTPError, ValueError):
        return {}
    return health if isinstance(health, dict) else {}


def unhealthy(health: Mapping[str, Any], parts: Sequence[str], since: datetime) -> list[str]:
    """Return the parts of Airflow that have not reported since `since`; an old heartbeat proves nothing."""
    waiting = []
    for part in parts:
        report = health.get(part) or {}
        beat = report.get(f"latest_{part}_heartbeat")
        if report.get("status") != "healthy" or beat is None or datetime.fromisoformat(beat) < since:
            waiting.append(part)
    return waiting


def missing_services(ports: Ports, programs: Sequence[str], since: datetime, begun: bool = True) -> dict[str, str]:
    """Return each service that does not answer, or has not reported since `since`, with what it did not do.

    Args:
        begun: whether Airflow's programs have been started; before, none of them is asked.
    """
    missing: dict[str, str] = {}
    if not is_answered(ports.spark):
        missing[SPARK] = f"did not answer on port {ports.spark}"
    health = airflow_health(ports.airflow) if begun else {}
    if not health:
        missing["airflow-api-server"] = f"did not answer on port {ports.airflow}"
        return missing
    parts = [name for name in programs if name not in (SPARK, "airflow-api-server")]
    for part in unhealthy(health, [name.removeprefix("airflow-").replace("-", "_") for name in parts], since):
        missing[f"airflow-{part.replace('_', '-')}"] = "sent no heartbeat"
    return missing


def wait_until_healthy(
    home: Home,
    ports: Ports,
    programs: Sequence[str],
    since: datetime,
    deadline: float,
    begin_airflow: Callable[[], bool],
) -> None:
    """Wait for every service; raise as soon as one of them has died."""
    supervisor = Supervisor(home)
    pids: dict[str, int] = {}
    waiting: dict[str, str] = {}
    while time.monotonic() < deadline:
        begun = begin_airflow()
        for service in supervisor.states():
            if service.name not in programs or (service.name != SPARK and not begun):
                continue
            died = service.state in ("BACKOFF", "EXITED", "FATAL", "STOPPED", "UNKNOWN")
            if died or (service.pid and pids.setdefault(service.name, service.pid) != service.pid):
                raise failure(home, service.name, f"ended while starting (supervisord says {service.state})")
        waiting = missing_services(ports, programs, since, begun)
        if not waiting:
            return
        time.sleep(0.2)
    name, failing = next(iter(waiting.items()), (MIGRATION, "did not end"))
    raise failure(home, name, f"{failing} in time (CLICKMILL_START_TIMEOUT, in seconds, gives it longer)")


def unwell(home: Path | str | None = None, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return each service that does not do its work, with what is wrong; {} when all are well.

    Raises:
        ClickmillError: when no services run.
    """
    ports = running_ports(find_home(home))
    # Airflow itself calls a part unhealthy whose last heartbeat is too old.
    long_ago = datetime.min.replace(tzinfo=UTC)
    return missing_services(ports, programs_of(os.environ if environment is None else environment), long_ago)

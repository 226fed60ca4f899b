"""The start of the services.

Choose ports, write the settings, start supervisord (Spark starts at once), migrate Airflow's database meanwhile, start
Airflow's programs, wait until all answer.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from include.errors import ClickmillError, UsageError
from include.home import REPOSITORY
from ops.home import Home, find_home, load_secrets
from ops.services.beside import runs_beside, start_beside
from ops.services.environment import metrics_port, render_settings, service_environment
from ops.services.health import airflow_health, is_answered, wait_until_healthy
from ops.services.logs import failure, log_files
from ops.services.migration import begin_migration, end_migration
from ops.services.ports import PortChooser
from ops.services.programs import METRICS, SPARK, programs_of
from ops.services.running import (
    Ports,
    Services,
    read_ports,
    require_same_data,
    services_of,
    write_remote,
)
from ops.services.stop import stop_home
from ops.services.supervisor import Supervisor, home_lock, socket_path
from ops.setup.prerequisites import find_java

#: How long the metrics may take to be served.
_METRICS_SECONDS = 30


def _start_supervisord(home: Home, environment: Mapping[str, str], deadline: float) -> None:
    """Start supervisord, which leaves this process's session and outlives it."""
    configuration = Path(__file__).parent / "supervisord.conf"
    socket_path(home).unlink(missing_ok=True)
    answer = subprocess.run(
        [sys.executable, "-m", "supervisor.supervisord", "-c", str(configuration)],
        env=dict(environment), cwd=home.run, stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    if answer.returncode != 0:
        # Its last line only says how to ask for help.
        lines = (answer.stdout + answer.stderr).strip().splitlines()
        errors = [line for line in lines if line.startswith("Error")] or lines[-1:]
        raise ClickmillError(f"supervisord did not start: {' '.join(errors)}; see {home.logs / 'supervisord.log'}")
    supervisor = Supervisor(home)
    while not supervisor.is_up():
        if time.monotonic() > deadline:
            raise failure(home, "supervisord", "did not answer")
        time.sleep(0.05)


def _running(home: Home, environment: Mapping[str, str]) -> Services | None:
    """Return the services if all of them run already."""
    ports, supervisor = read_ports(home), Supervisor(home)
    if ports is None or not supervisor.is_up():
        return None
    up = {service.name for service in supervisor.states() if service.state == "RUNNING"}
    if not up.issuperset(programs_of(environment)):
        return None
    if not is_answered(ports.spark) or not airflow_health(ports.airflow):
        return None
    require_same_data(home)
    for variable, port in (
        ("CLICKMILL_AIRFLOW_PORT", ports.airflow),
        ("CLICKMILL_SPARK_PORT", ports.spark),
        ("CLICKMILL_SPARK_UI_PORT", ports.spark_ui),
    ):
        wanted = environment.get(variable, "").strip()
        if wanted and wanted != str(port):
            raise UsageError(f"{variable}={wanted}, but the services already run on {port}; run: make stop")
    return services_of(home, ports, load_secrets(home))


def start_timeout(environment: Mapping[str, str]) -> float:
    """Return how many seconds a start may take."""
    value = environment.get("CLICKMILL_START_TIMEOUT", "").strip() or "180"
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds < 86400:
        raise UsageError(f"CLICKMILL_START_TIMEOUT={value!r}: expected seconds, from 1 to 86399")
    return seconds


def start(home: Path | str | None = None, environment: Mapping[str, str] | None = None) -> Services:
    """Start the services of a home and wait until all of them answer; running ones are left alone.

    Args:
        home: CLICKMILL_HOME; by default the variable's value, else <repository>/var.
        environment: in place of this process's own.

    Raises:
        ClickmillError: when a port is taken, or a service does not come up; all that was started is ended again.
    """
    environment = dict(os.environ if environment is None else environment)
    place = find_home(home, environment)
    place.make()
    java = find_java(environment)
    deadline = time.monotonic() + start_timeout(environment)
    programs = programs_of(environment)
    metrics = metrics_port(environment)
    with home_lock(place):
        running = _running(place, environment)
        if running is not None:
            if metrics is not None and not runs_beside(place, METRICS):
                raise UsageError(f"CLICKMILL_METRICS_PORT={metrics}, but the services run without it; run: make stop")
            return running
        stop_home(place)
        keys = load_secrets(place)
        with PortChooser(environment) as chooser:
            ports = Ports(
                airflow=chooser.choose("CLICKMILL_AIRFLOW_PORT", 8080, "Airflow"),
                spark=chooser.choose("CLICKMILL_SPARK_PORT", 15002, "Spark Connect"),
                spark_ui=chooser.choose("CLICKMILL_SPARK_UI_PORT", 4040, "Spark's UI"),
            )
            complete = service_environment(place, ports, keys, java, environment)
            try:
                _start_all(place, ports, programs, complete, deadline)
                if metrics is not None:
                    start_beside(place, METRICS, _METRICS_SECONDS, partial(is_answered, metrics))
            except BaseException:
                stop_home(place)
                raise
    return services_of(place, ports, keys)


def _start_all(
    home: Home, ports: Ports, programs: Sequence[str], environment: Mapping[str, str], deadline: float
) -> None:
    """Do the steps of a start."""
    shutil.rmtree(home.spark_local, ignore_errors=True)
    home.spark_local.mkdir()
    for name in programs:
        for log in log_files(home, name):
            # Each start begins its own, so that "the last lines" are this start's.
            if log.exists():
                os.replace(log, log.with_name(log.name + ".previous"))
    template = REPOSITORY / "config" / "spark-defaults.conf"
    rendered = render_settings(template.read_text(encoding="utf-8"), environment, str(template))
    (home.run / template.name).write_text(rendered, encoding="utf-8")
    since = datetime.now(UTC)
    details = {"airflow": ports.airflow, "spark": ports.spark, "spark_ui": ports.spark_ui, "data": str(home.data)}
    home.service_file.write_text(json.dumps(details | {"started_at": since.isoformat()}) + "\n")
    write_remote(home, ports)
    _start_supervisord(home, environment, deadline)
    supervisor = Supervisor(home)
    migration = begin_migration(home, environment)
    begun = False

    def begin_airflow() -> bool:
        nonlocal begun
        if not begun and (migration is None or migration.poll() is not None):
            if migration is not None:
                end_migration(home, migration, environment, 1)
            for name in programs:
                if name != SPARK:
                    supervisor.start(name)
            begun = True
        return begun

    wait_until_healthy(home, ports, programs, since, deadline, begin_airflow)

"""The services of one home: Spark Connect and Airflow, under supervisord, on loopback only.

From Python: `start(home)`, `stop(home)`, `status(home)`. From a shell: `python -m ops.services start`,
`stop`, `status`, and for jobs run by hand `eval "$(python -m ops.services env)"`. In a container, or under
systemd, `run` starts them and stays; `health` says whether all are well.

Steps of a start: choose ports, write the settings, start supervisord (Spark starts at once), migrate
Airflow's database meanwhile, start Airflow's programs, wait until all answer.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import http.client
import ipaddress
import json
import os
import re
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
import xmlrpc.client
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
from supervisor.xmlrpc import SupervisorTransport

from ops.bootstrap import REPOSITORY, SetupError, find_java
from ops.home import Home, OpsError, Secrets, find_home, first_start, load_secrets
from ops.ports import PortChooser, private_temp_folder

SPARK = "spark-connect"
MIGRATION = "airflow-db-migrate"
AIRFLOW = ("airflow-api-server", "airflow-scheduler", "airflow-dag-processor")
TRIGGERER = "airflow-triggerer"
BROKER = "kafka-broker"  # see ops/broker.py
RECEIVER = "click-receiver"  # see ops/receive.py
# Carried by every process of a home's services and by no other: stop ends what carries it.
MARK = "CLICKMILL_SERVICES_OF"
# A Unix socket's path holds 104 bytes on macOS and 108 on Linux; supervisord appends its pid at first.
LONGEST_SOCKET_PATH = 90
LOCAL_NAMES = "localhost,127.0.0.1,::1"
# How often `run` looks whether supervisord still keeps the services up.
WATCH_SECONDS = 5.0


@dataclass(frozen=True)
class Services:
    """Running services: where they answer, and what it takes to be let in."""

    home: Path
    airflow_port: int
    spark_port: int
    spark_ui_port: int
    airflow_user: str
    airflow_password: str = field(repr=False)
    spark_token: str = field(repr=False)

    @property
    def airflow_url(self) -> str:
        """The Airflow UI and REST API."""
        return f"http://localhost:{self.airflow_port}"

    @property
    def spark_ui_url(self) -> str:
        """Spark's own UI and its REST API (/api/v1)."""
        return f"http://localhost:{self.spark_ui_port}"

    @property
    def spark_url(self) -> str:
        """Where Spark Connect answers, without the token."""
        return f"sc://localhost:{self.spark_port}"

    @property
    def spark_remote(self) -> str:
        """SPARK_REMOTE for a client; holds the token. With one, and no TLS, only `localhost` will do."""
        return f"{self.spark_url}/;token={self.spark_token}"

    def environment(self) -> dict[str, str]:
        """The variables a job run by hand needs; SPARK_REMOTE holds the token."""
        return {
            "CLICKMILL_HOME": str(self.home),
            "SPARK_REMOTE": self.spark_remote,
            "CLICKMILL_SPARK_UI_URL": self.spark_ui_url,
            "CLICKMILL_AIRFLOW_URL": self.airflow_url,
            "AIRFLOW_HOME": str(self.home / "airflow"),
            "GX_ANALYTICS_ENABLED": "false",
        }


@dataclass(frozen=True)
class ServiceState:
    """One service as supervisord sees it."""

    name: str
    state: str
    pid: int


@dataclass(frozen=True)
class Ports:
    """The ports of one home's services."""

    airflow: int
    spark: int
    spark_ui: int


# --- settings -------------------------------------------------------------------------------------


def render_settings(template: str, values: Mapping[str, str], origin: str) -> str:
    """Fill `${NAME}` and `${NAME:-default}` in a settings file; an empty value counts as none.

    Raises:
        OpsError: exit 2, naming every variable without value and default.
    """
    missing: list[str] = []

    def fill(found: re.Match[str]) -> str:
        value = values.get(found["name"]) or found["default"]
        if value is None:
            missing.append(found["name"])
        return value or ""

    rendered = []
    for line in template.splitlines():
        if line.lstrip().startswith("#"):
            rendered.append(line)
        else:
            rendered.append(re.sub(r"\$\{(?P<name>[A-Z][A-Z0-9_]*)(?::-(?P<default>[^}]*))?\}", fill, line))
    if missing:
        raise OpsError(f"{origin} needs a value for {', '.join(missing)}: set it, or give it a default", 2)
    return "\n".join(rendered) + "\n"


def socket_path(home: Home) -> Path:
    """Return where supervisord listens: in the home, or for a long path in a private temp folder."""
    path = home.run / "supervisor.sock"
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    name = hashlib.sha256(os.fsencode(home.path)).hexdigest()[:16] + ".sock"
    return private_temp_folder() / name


def listen_address(environment: Mapping[str, str]) -> str:
    """Return the address on which Airflow and Spark's UI listen; Spark Connect stays on loopback.

    Raises:
        OpsError: exit 2, when CLICKMILL_LISTEN holds no IP address.
    """
    address = environment.get("CLICKMILL_LISTEN", "").strip() or "127.0.0.1"
    try:
        ipaddress.ip_address(address)
    except ValueError:
        raise OpsError(
            f"CLICKMILL_LISTEN={address!r}: expected an IP address, 127.0.0.1 (this machine only, the default) "
            "or 0.0.0.0 (in a container)",
            2,
        ) from None
    return address


def airflow_settings(home: Home, ports: Ports, keys: Secrets, address: str) -> dict[str, str]:
    """Airflow's settings that Clickmill depends on; no shell variable overrides these."""
    connection = {
        "conn_type": "spark_connect",
        "host": "localhost",
        "port": ports.spark,
        "password": keys.spark_token,
    }
    return {
        "AIRFLOW_HOME": str(home.airflow),
        "AIRFLOW__CORE__DAGS_FOLDER": str(REPOSITORY / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(REPOSITORY / "plugins"),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://localhost:{ports.airflow}/execution/",
        "AIRFLOW__CORE__FERNET_KEY": keys.airflow_fernet_key,
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(keys.airflow_passwords_file),
        "AIRFLOW__API__HOST": address,
        "AIRFLOW__API__PORT": str(ports.airflow),
        "AIRFLOW__API__BASE_URL": f"http://localhost:{ports.airflow}",
        "AIRFLOW__API__SECRET_KEY": keys.airflow_secret_key,
        "AIRFLOW__API_AUTH__JWT_SECRET": keys.airflow_jwt_secret,
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home.logs / "airflow"),
        "AIRFLOW__LOGGING__DAG_PROCESSOR_CHILD_PROCESS_LOG_DIRECTORY": str(home.logs / "dag-processor"),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(connection),
    }


# What a task's process would import anew each time, Great Expectations alone for 3 s. Not our own modules: a change of
# theirs is to hold for the next task.
PRELOADED = (
    "airflow.sdk.execution_time.supervisor",
    "airflow.providers.apache.spark.hooks.spark_connect",
    "airflow.providers.apache.spark.operators.spark_pyspark",
    "pyspark.sql.connect.session",
    "great_expectations",
    "great_expectations.render.renderer",
    "great_expectations.render.view",
    "deltalake",
    "pyarrow.parquet",
    "pygal",
)

# Airflow's settings that fit a small machine; a variable of the same name in the shell wins.
AIRFLOW_DEFAULTS = {
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
    # Processes forked for tasks. Spark does the work; these mostly wait for it.
    "AIRFLOW__CORE__PARALLELISM": "4",
    # The workers, and with them the tasks, are forked from a process that has imported these.
    "AIRFLOW__SCHEDULER__MP_START_METHOD": "forkserver",
    "AIRFLOW__SCHEDULER__MP_FORKSERVER_PRELOAD": ",".join(PRELOADED),
    "AIRFLOW__API__WORKERS": "1",
    "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
    # A new DAG file is seen within half a minute, not five.
    "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "30",
    # How long a finished task waits for the next to be scheduled, at worst (default 1 s).
    "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.25",
    # Runs that it looks at each time (default 20), a backfill's after all others: those that wait for a person (see
    # dags/held_hours.py) must not keep it from looking at the rest.
    "AIRFLOW__SCHEDULER__MAX_DAGRUNS_PER_LOOP_TO_SCHEDULE": "200",
    # Tasks of a scheduler that was killed are run again within a minute, not after five.
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "30",
    "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    "AIRFLOW__LOGGING__COLORED_CONSOLE_LOG": "False",
}

#: Clickmill's modules, and what keeps a secret out of what Spark's workers print.
PYTHONPATH = os.pathsep.join(map(str, (REPOSITORY, REPOSITORY / "ops" / "python_site")))


def service_environment(home: Home, ports: Ports, keys: Secrets, java: Path, base: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of supervisord and with it of every service. It holds secrets."""
    # Of the shell's: what would point a service elsewhere, or at another program's packages.
    unwanted = ("PYTHONPATH", "PYTHONHOME", "SPARK_REMOTE", "SPARK_MASTER", "SPARK_CONF_DIR")
    environment = {
        name: value
        for name, value in base.items()
        if name not in unwanted and not name.startswith(("PYTEST_", "SPARK_CONNECT_", "PYSPARK_"))
    }
    spark_home = find_spark_home()
    for name in ("NO_PROXY", "no_proxy"):
        environment[name] = ",".join(filter(None, (environment.get(name), LOCAL_NAMES)))
    for name, value in AIRFLOW_DEFAULTS.items():
        environment.setdefault(name, value)
    address = listen_address(base)
    environment.setdefault("SPARK_LOCAL_IP", address)
    return environment | {
        MARK: str(home.path),
        "CLICKMILL_HOME": str(home.path),
        "CLICKMILL_REPOSITORY": str(REPOSITORY),
        "CLICKMILL_SCHEDULE_START": first_start(home),
        "CLICKMILL_PYTHON": sys.executable,
        "CLICKMILL_SUPERVISOR_SOCKET": str(socket_path(home)),
        "CLICKMILL_SPARK_PORT": str(ports.spark),
        "CLICKMILL_SPARK_UI_PORT": str(ports.spark_ui),
        "CLICKMILL_AIRFLOW_PORT": str(ports.airflow),
        "CLICKMILL_SPARK_UI_URL": f"http://localhost:{ports.spark_ui}",
        "CLICKMILL_SPARK_JARS": ",".join(str(jar) for jar in sorted((REPOSITORY / ".jars").glob("*.jar"))),
        "JAVA_HOME": str(java.resolve().parent.parent),
        "SPARK_HOME": str(spark_home),
        # log4j2.properties; --properties-file keeps its spark-defaults.conf from being read unrendered.
        "SPARK_CONF_DIR": str(REPOSITORY / "config"),
        "SPARK_LOCAL_DIRS": str(home.run / "spark"),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": keys.spark_token,
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), base.get("PATH", os.defpath))),
        "PYTHONPATH": PYTHONPATH,
        "PYTHONUNBUFFERED": "1",
        "GX_ANALYTICS_ENABLED": "false",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        # Airflow renames its processes; without this the new name overwrites MARK as well.
        "SPT_NOENV": "1",
        **airflow_settings(home, ports, keys, address),
    }


def find_spark_home() -> Path:
    """Return pyspark's folder without importing it."""
    folder = Path(sys.prefix) / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages/pyspark"
    if not (folder / "bin" / "spark-submit").exists():
        raise OpsError(f"no Spark in {folder}: run: make setup, and use {REPOSITORY}/.venv/bin/python", 2)
    return folder


# --- supervisord ----------------------------------------------------------------------------------


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
            ServiceState(str(found["name"]), str(found["statename"]), int(found["pid"]))
            for found in self._call("getAllProcessInfo")
        ]

    def state(self, name: str) -> str:
        """What supervisord says of one service, such as RUNNING."""
        return next(found.state for found in self.states() if found.name == name)

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


def marked_processes(home: Home) -> list[psutil.Process]:
    """Return the live processes of this home's services, and no others."""
    mine = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    found = []
    for process in psutil.process_iter():
        if process.pid in mine:
            continue
        with suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == str(home.path) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _end_marked(home: Home, patience: float) -> None:
    """End what carries the home's mark: first asked, then killed."""
    for signal_name in ("terminate", "kill"):
        processes = marked_processes(home)
        for process in processes:
            with suppress(psutil.Error):
                getattr(process, signal_name)()
        deadline = time.monotonic() + patience
        while marked_processes(home) and time.monotonic() < deadline:
            time.sleep(0.1)


@contextmanager
def _home_lock(home: Home) -> Iterator[None]:
    """Let a second start or stop of the same home wait for the first."""
    with (home.run / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _service_file(home: Home) -> Path:
    return home.run / "service.json"


def _read_ports(home: Home) -> Ports | None:
    try:
        content = json.loads(_service_file(home).read_text(encoding="utf-8"))
        return Ports(**{name: int(content[name]) for name in ("airflow", "spark", "spark_ui")})
    except (OSError, ValueError, KeyError):
        return None


# --- start ----------------------------------------------------------------------------------------


def log_files(home: Home, name: str) -> list[Path]:
    """Return the log files of a service, the most telling last."""
    if name == SPARK:
        return [home.logs / "spark-connect.out", home.logs / "spark-connect.log"]
    return [home.logs / f"{name}.log"]


def last_lines(path: Path, count: int = 15) -> list[str]:
    """Return the last lines of a file, [] when it cannot be read."""
    try:
        with path.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - 64 * 1024))
            return stream.read().decode("utf-8", "replace").splitlines()[-count:]
    except OSError:
        return []


def _failure(home: Home, name: str, what: str) -> OpsError:
    """Say which service failed, with its last log lines and where the rest is."""
    shown: list[str] = []
    for path in log_files(home, name):
        lines = last_lines(path)
        if lines:
            shown += [f"--- {path}", *lines]
    where = "its last log lines are above" if shown else "it left no log"
    return OpsError("\n".join((*shown, f"{name} {what}; {where}; all logs are in {home.logs}")))


def _migration_stamp(home: Home, environment: Mapping[str, str]) -> str:
    """What the migrated database depends on: Airflow's version and which database it is."""
    database = environment.get("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "")
    return hashlib.sha256(f"{version('apache-airflow-core')} {database}".encode()).hexdigest()


def _begin_migration(home: Home, environment: Mapping[str, str]) -> subprocess.Popen[bytes] | None:
    """Start `airflow db migrate` unless this version has done it for this database."""
    stamp = home.airflow / "migrated"
    own = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN" not in environment
    # Only the home's own database is as old as its stamp: a server's may have been emptied meanwhile.
    if not own or not (home.airflow / "airflow.db").exists():
        stamp.unlink(missing_ok=True)
    if stamp.exists() and stamp.read_text(encoding="utf-8") == _migration_stamp(home, environment):
        return None
    with (home.logs / f"{MIGRATION}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "airflow", "db", "migrate"],
            env=dict(environment), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            cwd=REPOSITORY, start_new_session=True,
        )  # fmt: skip


def _end_migration(
    home: Home, migration: subprocess.Popen[bytes], environment: Mapping[str, str], timeout: float
) -> None:
    try:
        code = migration.wait(timeout=max(1.0, timeout))
    except subprocess.TimeoutExpired:
        raise _failure(home, MIGRATION, "took too long") from None
    if code != 0:
        raise _failure(home, MIGRATION, f"ended with exit code {code}")
    database = home.airflow / "airflow.db"
    if "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN" not in environment and database.exists():
        # Readers and the one writer no longer wait for each other; SQLite keeps the mode in the file.
        connection = sqlite3.connect(database)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.close()
    (home.airflow / "migrated").write_text(_migration_stamp(home, environment), encoding="utf-8")


def _answers(port: int) -> bool:
    """Whether something accepts connections on the port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _airflow_health(port: int) -> dict[str, Any]:
    """Return Airflow's own health report, {} while there is none."""
    # No proxy: the shell's http_proxy is for the world outside.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{port}/api/v2/monitor/health", timeout=5) as answer:
            health = json.load(answer)
    except (OSError, ValueError, http.client.HTTPException):
        return {}
    return health if isinstance(health, dict) else {}


def _unhealthy(health: Mapping[str, Any], parts: Sequence[str], since: datetime) -> list[str]:
    """Return the parts of Airflow that have not reported since `since`; an old heartbeat proves nothing."""
    waiting = []
    for part in parts:
        report = health.get(part) or {}
        beat = report.get(f"latest_{part}_heartbeat")
        if report.get("status") != "healthy" or beat is None or datetime.fromisoformat(beat) < since:
            waiting.append(part)
    return waiting


def _missing(ports: Ports, programs: Sequence[str], since: datetime, begun: bool = True) -> dict[str, str]:
    """Return each service that does not answer, or has not reported since `since`, with what it did not do.

    Args:
        begun: whether Airflow's programs have been started; before, none of them is asked.
    """
    missing: dict[str, str] = {}
    if not _answers(ports.spark):
        missing[SPARK] = f"did not answer on port {ports.spark}"
    health = _airflow_health(ports.airflow) if begun else {}
    if not health:
        missing["airflow-api-server"] = f"did not answer on port {ports.airflow}"
        return missing
    parts = [name for name in programs if name not in (SPARK, "airflow-api-server")]
    for part in _unhealthy(health, [name.removeprefix("airflow-").replace("-", "_") for name in parts], since):
        missing[f"airflow-{part.replace('_', '-')}"] = "sent no heartbeat"
    return missing


def _wait_until_healthy(
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
        for found in supervisor.states():
            if found.name not in programs or (found.name != SPARK and not begun):
                continue
            died = found.state in ("BACKOFF", "EXITED", "FATAL", "STOPPED", "UNKNOWN")
            if died or (found.pid and pids.setdefault(found.name, found.pid) != found.pid):
                raise _failure(home, found.name, f"ended while starting (supervisord says {found.state})")
        waiting = _missing(ports, programs, since, begun)
        if not waiting:
            return
        time.sleep(0.2)
    name, what = next(iter(waiting.items()), (MIGRATION, "did not end"))
    raise _failure(home, name, f"{what} in time (CLICKMILL_START_TIMEOUT, in seconds, gives it longer)")


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
        said = [line for line in lines if line.startswith("Error")] or lines[-1:]
        raise OpsError(f"supervisord did not start: {' '.join(said)}; see {home.logs / 'supervisord.log'}")
    supervisor = Supervisor(home)
    while not supervisor.is_up():
        if time.monotonic() > deadline:
            raise _failure(home, "supervisord", "did not answer")
        time.sleep(0.05)


def _programs(environment: Mapping[str, str]) -> list[str]:
    triggerer = environment.get("CLICKMILL_TRIGGERER", "0").lower() in ("1", "true", "yes")
    return [SPARK, *AIRFLOW, *((TRIGGERER,) if triggerer else ())]


def _services(home: Home, ports: Ports, keys: Secrets) -> Services:
    return Services(
        home=home.path,
        airflow_port=ports.airflow,
        spark_port=ports.spark,
        spark_ui_port=ports.spark_ui,
        airflow_user="admin",
        airflow_password=keys.airflow_password,
        spark_token=keys.spark_token,
    )


def _remote_file(home: Home) -> Path:
    """Where jobs run by hand find the Spark server of their home (spark_jobs/engine/session.py reads it)."""
    return home.run / "spark_remote"


def broker_file(home: Home) -> Path:
    """Where streams find the embedded broker of their home, while it runs (include/streams/kafka.py reads it)."""
    return home.run / "kafka_bootstrap_servers"


def _write_remote(home: Home, ports: Ports) -> None:
    file = _remote_file(home)
    file.touch(mode=0o600)
    file.write_text(_services(home, ports, load_secrets(home)).spark_remote + "\n", encoding="utf-8")


def _running(home: Home, environment: Mapping[str, str]) -> Services | None:
    """Return the services if all of them run already."""
    ports, supervisor = _read_ports(home), Supervisor(home)
    if ports is None or not supervisor.is_up():
        return None
    up = {found.name for found in supervisor.states() if found.state == "RUNNING"}
    if not up.issuperset(_programs(environment)):
        return None
    if not _answers(ports.spark) or not _airflow_health(ports.airflow):
        return None
    for variable, port in (
        ("CLICKMILL_AIRFLOW_PORT", ports.airflow),
        ("CLICKMILL_SPARK_PORT", ports.spark),
        ("CLICKMILL_SPARK_UI_PORT", ports.spark_ui),
    ):
        wanted = environment.get(variable, "").strip()
        if wanted and wanted != str(port):
            raise OpsError(f"{variable}={wanted}, but the services already run on {port}; run: make stop", 2)
    return _services(home, ports, load_secrets(home))


def start_timeout(environment: Mapping[str, str]) -> float:
    """Return how many seconds a start may take."""
    value = environment.get("CLICKMILL_START_TIMEOUT", "").strip() or "180"
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds < 86400:
        raise OpsError(f"CLICKMILL_START_TIMEOUT={value!r}: expected seconds, from 1 to 86399", 2)
    return seconds


def start(home: Path | str | None = None, environment: Mapping[str, str] | None = None) -> Services:
    """Start the services of a home and wait until all of them answer; running ones are left alone.

    Args:
        home: CLICKMILL_HOME; by default the variable's value, else <repository>/var.
        environment: in place of this process's own.

    Raises:
        OpsError: when a port is taken, or a service does not come up; all that was started is ended again.
    """
    environment = dict(os.environ if environment is None else environment)
    place = find_home(home, environment)
    place.make()
    try:
        java = find_java(environment)
    except SetupError as error:
        raise OpsError(str(error), error.exit_code) from error
    deadline = time.monotonic() + start_timeout(environment)
    programs = _programs(environment)
    with _home_lock(place):
        running = _running(place, environment)
        if running is not None:
            return running
        _stop(place)
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
            except BaseException:
                _stop(place)
                raise
    return _services(place, ports, keys)


def _start_all(
    home: Home, ports: Ports, programs: Sequence[str], environment: Mapping[str, str], deadline: float
) -> None:
    """Do the steps of a start."""
    scratch = home.run / "spark"  # settings.scratch of the jobs
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    for name in programs:
        for log in log_files(home, name):
            # Each start begins its own, so that "the last lines" are this start's.
            if log.exists():
                os.replace(log, log.with_name(log.name + ".previous"))
    template = REPOSITORY / "config" / "spark-defaults.conf"
    rendered = render_settings(template.read_text(encoding="utf-8"), environment, str(template))
    (home.run / template.name).write_text(rendered, encoding="utf-8")
    since = datetime.now(UTC)
    details = {"airflow": ports.airflow, "spark": ports.spark, "spark_ui": ports.spark_ui}
    _service_file(home).write_text(json.dumps(details | {"started_at": since.isoformat()}) + "\n")
    _write_remote(home, ports)
    _start_supervisord(home, environment, deadline)
    supervisor = Supervisor(home)
    migration = _begin_migration(home, environment)
    begun = False

    def begin_airflow() -> bool:
        nonlocal begun
        if not begun and (migration is None or migration.poll() is not None):
            if migration is not None:
                _end_migration(home, migration, environment, 1)
            for name in programs:
                if name != SPARK:
                    supervisor.start(name)
            begun = True
        return begun

    _wait_until_healthy(home, ports, programs, since, deadline, begin_airflow)


# --- stop, status ---------------------------------------------------------------------------------


def _stop(home: Home, patience: float = 40) -> bool:
    """End what runs for the home; the caller holds the home's lock."""
    supervisor = Supervisor(home)
    was_up = bool(marked_processes(home))
    if supervisor.is_up():
        deadline = time.monotonic() + patience
        with suppress(OSError, http.client.HTTPException, xmlrpc.client.Error):
            # All at once first: supervisord's own shutdown ends one service after the other.
            supervisor.stop_all()
            while time.monotonic() < deadline and any(found.pid for found in supervisor.states()):
                time.sleep(0.1)
            supervisor.shut_down()
            while time.monotonic() < deadline and supervisor.is_up():
                time.sleep(0.05)
    _end_marked(home, patience=5)
    left = marked_processes(home)
    if left:
        raise OpsError(f"cannot end process {', '.join(str(process.pid) for process in left)} of {home.path}")
    pid_file = home.run / "supervisord.pid"
    for leftover in (socket_path(home), _service_file(home), _remote_file(home), broker_file(home), pid_file):
        leftover.unlink(missing_ok=True)
    return was_up


def stop(home: Path | str | None = None) -> bool:
    """End exactly the services of a home, wait for them, and return whether there were any."""
    place = find_home(home)
    if not place.run.is_dir():
        return False
    with _home_lock(place):
        return _stop(place)


def status(home: Path | str | None = None) -> list[ServiceState]:
    """Return the services that a home has, [] when none run."""
    place = find_home(home)
    supervisor = Supervisor(place)
    return supervisor.states() if place.run.is_dir() and supervisor.is_up() else []


def _running_ports(home: Home) -> Ports:
    ports = _read_ports(home)
    if ports is None or not Supervisor(home).is_up():
        raise OpsError(f"no services run for {home.path}; run: make run, or .venv/bin/python -m ops.services start")
    return ports


def running_services(home: Path | str | None = None) -> Services:
    """Return where the running services are.

    Raises:
        OpsError: when they do not run.
    """
    place = find_home(home)
    return _services(place, _running_ports(place), load_secrets(place))


def unwell(home: Path | str | None = None, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return each service that does not do its work, with what is wrong; {} when all are well.

    Raises:
        OpsError: when no services run.
    """
    ports = _running_ports(find_home(home))
    # Airflow itself calls a part unhealthy whose last heartbeat is too old.
    long_ago = datetime.min.replace(tzinfo=UTC)
    return _missing(ports, _programs(os.environ if environment is None else environment), long_ago)


# --- services that are not always there: Kafka, the receiver of clicks -----------------------------


def start_beside(home: Home, name: str, patience: float, answers: Callable[[], bool] = lambda: True) -> None:
    """Start such a service, and wait until it is up and answers.

    Raises:
        OpsError: if no services run, or it does not come up; it is ended then.
    """
    _running_ports(home)
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
    raise _failure(home, name, "did not start")


def runs_beside(home: Home, name: str) -> bool:
    """Whether such a service runs."""
    return any(found.name == name and found.state == "RUNNING" for found in status(home.path))


def stop_beside(home: Home, name: str) -> None:
    """End such a service; nothing happens if it, or all, do not run."""
    if status(home.path):
        Supervisor(home).stop(name)


# --- run in the foreground ------------------------------------------------------------------------


def _watch(home: Home) -> None:
    """Return only by raising: when supervisord is gone, or has given a service up."""
    supervisor = Supervisor(home)
    while True:
        time.sleep(WATCH_SECONDS)
        try:
            lost = [found.name for found in supervisor.states() if found.state == "FATAL"]
        except (OSError, http.client.HTTPException, xmlrpc.client.Error):
            raise OpsError(f"supervisord has ended; see {home.logs / 'supervisord.log'}") from None
        if lost:
            raise _failure(home, lost[0], "ended again and again")


def run(home: Path | str | None = None) -> None:
    """Start the services, stay until told to end, by SIGTERM or SIGINT, then end them.

    For a container's main process, and for systemd: both start anew what fails.

    Raises:
        OpsError: when they do not start, or one of them does not stay up; all have been ended.
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


# --- command line ---------------------------------------------------------------------------------


def _print_addresses(services: Services) -> None:
    login = f"user {services.airflow_user}, password {services.airflow_password}"
    print(f"Airflow  {services.airflow_url}  ({login})")
    print(f"Spark    {services.spark_url}  UI {services.spark_ui_url}")
    print(f"home     {services.home}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Start, stop or show the services from the command line."""
    parser = argparse.ArgumentParser(prog="ops.services", description=str(__doc__).partition("\n")[0])
    parser.add_argument("action", choices=("start", "stop", "status", "env", "run", "health"))
    parser.add_argument("--home", help="CLICKMILL_HOME; default: the variable, else var/ in the repository")
    options = parser.parse_args(arguments)
    try:
        if options.action == "start":
            began = time.monotonic()
            services = start(options.home)
            print(f"services are up after {time.monotonic() - began:.1f} s")
            _print_addresses(services)
        elif options.action == "run":
            run(options.home)
        elif options.action == "health":
            missing = unwell(options.home)
            for name, what in missing.items():
                print(f"{name} {what}")
            return 1 if missing else 0
        elif options.action == "stop":
            print("services stopped" if stop(options.home) else "no services ran")
        elif options.action == "env":
            for name, value in running_services(options.home).environment().items():
                print(f"export {name}={shlex.quote(value)}")
        else:
            states = status(options.home)
            for found in states:
                print(f"{found.name:24} {found.state:10} {found.pid or ''}")
            if not states:
                print(f"no services run for {find_home(options.home).path}")
                return 1
            _print_addresses(running_services(options.home))
    except OpsError as error:
        print(f"services: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("services: interrupted; what was started has been ended", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

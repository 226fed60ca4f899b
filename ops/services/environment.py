"""The settings and the environment of the services."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from include.errors import UsageError
from include.home import REPOSITORY
from include.storage import is_on_disk
from ops.home import Home, Secrets, first_start
from ops.services.running import Ports
from ops.services.supervisor import MARK, socket_path
from ops.setup.class_data import SPARK_CLASSES, class_path
from ops.setup.jars import S3_JARS_LOCK, installed_jars

LOCAL_NAMES = "localhost,127.0.0.1,::1"


def render_settings(template: str, values: Mapping[str, str], origin: str) -> str:
    """Fill `${NAME}` and `${NAME:-default}` in a settings file; an empty value counts as none.

    Raises:
        UsageError: naming every variable without value and default.
    """
    missing: list[str] = []

    def fill(variable: re.Match[str]) -> str:
        value = values.get(variable["name"]) or variable["default"]
        if value is None:
            missing.append(variable["name"])
        return value or ""

    rendered = []
    for line in template.splitlines():
        if line.lstrip().startswith("#"):
            rendered.append(line)
        else:
            rendered.append(re.sub(r"\$\{(?P<name>[A-Z][A-Z0-9_]*)(?::-(?P<default>[^}]*))?\}", fill, line))
    if missing:
        raise UsageError(f"{origin} needs a value for {', '.join(missing)}: set it, or give it a default")
    return "\n".join(rendered) + "\n"


def listen_address(environment: Mapping[str, str]) -> str:
    """Return the address on which Airflow and Spark's UI listen; Spark Connect stays on loopback.

    Raises:
        UsageError: when CLICKMILL_LISTEN holds no IP address.
    """
    address = environment.get("CLICKMILL_LISTEN", "").strip() or "127.0.0.1"
    try:
        ipaddress.ip_address(address)
    except ValueError:
        raise UsageError(
            f"CLICKMILL_LISTEN={address!r}: expected an IP address, 127.0.0.1 (this machine only, the default) "
            "or 0.0.0.0 (in a container)",
        ) from None
    return address


def metrics_port(environment: Mapping[str, str]) -> int | None:
    """Return the port on which Prometheus is served; None: it is not.

    Raises:
        UsageError: when CLICKMILL_METRICS_PORT is no port.
    """
    port = environment.get("CLICKMILL_METRICS_PORT", "").strip()
    if not port:
        return None
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise UsageError(f"CLICKMILL_METRICS_PORT={port!r}: expected a port, such as 9464")
    return int(port)


def airflow_settings(ports: Ports, keys: Secrets, address: str) -> dict[str, str]:
    """Airflow's settings that the services of one machine depend on; no shell variable overrides these."""
    connection = {
        "conn_type": "spark_connect",
        "host": "localhost",
        "port": ports.spark,
        "password": keys.spark_token,
    }
    return {
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://localhost:{ports.airflow}/execution/",
        "AIRFLOW__CORE__FERNET_KEY": keys.airflow_fernet_key,
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(keys.airflow_passwords_file),
        "AIRFLOW__API__HOST": address,
        "AIRFLOW__API__PORT": str(ports.airflow),
        "AIRFLOW__API__BASE_URL": f"http://localhost:{ports.airflow}",
        "AIRFLOW__API__SECRET_KEY": keys.airflow_secret_key,
        "AIRFLOW__API_AUTH__JWT_SECRET": keys.airflow_jwt_secret,
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(connection),
    }


# What a task's process would import again each time, Great Expectations alone for 3 s, what a DAG file needs of Airflow
# 0.15 s. Not our own modules: a change of theirs is to hold for the next task.
PRELOADED = (
    "airflow.sdk.execution_time.supervisor",
    "airflow.sdk.execution_time.task_runner",
    "airflow.sdk.definitions.decorators",
    "airflow.timetables.trigger",
    "airflow.providers.standard.decorators.sensor",
    "airflow.providers.standard.operators.hitl",
    "airflow.providers.standard.operators.trigger_dagrun",
    "airflow.providers.apache.spark.hooks.spark_connect",
    "airflow.providers.apache.spark.operators.spark_pyspark",
    "pyspark.sql.connect.session",
    "great_expectations",
    "great_expectations.render.renderer",
    "great_expectations.render.view",
    "deltalake",
    "pyarrow.csv",
    "pyarrow.parquet",
    "pygal",
    "duckdb",
    "can_ada",
    "crawleruseragents",
    "maxminddb",
    "geoacumen",
    "pycountry",
    "orjson",
    "filelock",
    "statistics",
    "tomllib",
    # Last: it keeps what has been imported out of the collection of garbage.
    "ops.services.frozen",
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
    # A source that was declared is in the forms as soon as their files are read again (default: 30 s later).
    "AIRFLOW__CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL": "5",
    # How long a finished task waits for the next to be scheduled, at worst (default 1 s).
    "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.25",
    # Runs that it looks at each time (default 20), a backfill's after all others: those that wait for a person (see
    # dags/held_hours.py) must not keep it from looking at the rest.
    "AIRFLOW__SCHEDULER__MAX_DAGRUNS_PER_LOOP_TO_SCHEDULE": "200",
    # Tasks of a scheduler that was killed are run again within a minute, not after five.
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "30",
    # What tasks read and write, for OpenLineage; without a transport nothing is asked or sent.
    "AIRFLOW__OPENLINEAGE__EXTRACTORS": "dags.tasks.lineage.TaskLineage",
    "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    "AIRFLOW__LOGGING__COLORED_CONSOLE_LOG": "False",
}


#: Clickmill's modules, and what keeps a secret out of what Spark's workers print.
PYTHONPATH = os.pathsep.join(map(str, (REPOSITORY, REPOSITORY / "ops" / "python_site")))


def program_environment(home: Home, java: Path, base: Mapping[str, str]) -> dict[str, str]:
    """Return what every program of Clickmill needs, beside where the others are and what lets it in there."""
    # Of the shell's: what would point a program elsewhere, or at another program's packages.
    unwanted = ("PYTHONPATH", "PYTHONHOME", "SPARK_MASTER", "SPARK_CONF_DIR")
    environment = {
        name: value
        for name, value in base.items()
        if name not in unwanted and not name.startswith(("PYTEST_", "PYSPARK_"))
    }
    for name in ("NO_PROXY", "no_proxy"):
        environment[name] = ",".join(filter(None, (environment.get(name), LOCAL_NAMES)))
    for name, value in AIRFLOW_DEFAULTS.items():
        environment.setdefault(name, value)
    environment.setdefault("SPARK_LOCAL_IP", listen_address(base))
    environment.setdefault("SPARK_LOCAL_DIRS", str(home.spark_local))
    jars = spark_jars(home)
    # With JARs of an object store the class path is another than that of the archive.
    class_data = SPARK_CLASSES.java_options(REPOSITORY) if is_on_disk(home.data) else []
    is_here = (base.get("CLICKMILL_SPARK_MASTER") or "local").startswith("local")
    return environment | {
        MARK: str(home.path),
        "CLICKMILL_HOME": str(home.path),
        "CLICKMILL_DATA": str(home.data),
        "CLICKMILL_LOCKS": home.locks_database or "",
        "CLICKMILL_REPOSITORY": str(REPOSITORY),
        "CLICKMILL_PYTHON": sys.executable,
        "CLICKMILL_SPARK_CLASS_PATH": class_path(jars),
        "CLICKMILL_SPARK_CLASS_DATA": " ".join(f'"{option}"' for option in class_data),
        "CLICKMILL_SPARK_JARS": "" if is_here else ",".join(map(str, jars)),
        "JAVA_HOME": str(java.resolve().parent.parent),
        "SPARK_HOME": str(find_spark_home()),
        # By its name, not by the folder that has it: a folder on the class path rules out class data.
        "LOG4J_CONFIGURATION_FILE": str(REPOSITORY / "config" / "log4j2.properties"),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), base.get("PATH", os.defpath))),
        "PYTHONPATH": PYTHONPATH,
        "PYTHONUNBUFFERED": "1",
        "GX_ANALYTICS_ENABLED": "false",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        # Airflow renames its processes; without this the new name overwrites MARK as well.
        "SPT_NOENV": "1",
        "AIRFLOW_HOME": str(home.airflow),
        "AIRFLOW__CORE__DAGS_FOLDER": str(REPOSITORY / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(REPOSITORY / "plugins"),
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home.logs / "airflow"),
        "AIRFLOW__LOGGING__DAG_PROCESSOR_CHILD_PROCESS_LOG_DIRECTORY": str(home.logs / "dag-processor"),
    }


def service_environment(home: Home, ports: Ports, keys: Secrets, java: Path, base: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of supervisord and with it of every service. It holds secrets."""
    # Other servers than these, and their folders.
    unwanted = ("SPARK_REMOTE", "SPARK_LOCAL_DIRS")
    shell = {
        name: value for name, value in base.items()
        if name not in unwanted and not name.startswith("SPARK_CONNECT_")
    }  # fmt: skip
    return program_environment(home, java, shell) | {
        "CLICKMILL_SCHEDULE_START": first_start(home),
        "CLICKMILL_SUPERVISOR_SOCKET": str(socket_path(home)),
        "CLICKMILL_SPARK_PORT": str(ports.spark),
        "CLICKMILL_SPARK_UI_PORT": str(ports.spark_ui),
        "CLICKMILL_AIRFLOW_PORT": str(ports.airflow),
        "CLICKMILL_SPARK_UI_URL": f"http://localhost:{ports.spark_ui}",
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": keys.spark_token,
        **airflow_settings(ports, keys, listen_address(base)),
    }


def spark_jars(home: Home) -> list[Path]:
    """The JARs of Spark's server; those for an object store only where the data is in one.

    Raises:
        UsageError: if they are not installed.
    """
    jars = SPARK_CLASSES.jars(REPOSITORY)
    if is_on_disk(home.data):
        return jars
    of_store = installed_jars(REPOSITORY, S3_JARS_LOCK)
    if not of_store:
        raise UsageError(f"CLICKMILL_DATA is {home.data}, and Spark has no JARs for such a store: run: make setup")
    return [*jars, *of_store]


def find_spark_home() -> Path:
    """Return pyspark's folder without importing it."""
    folder = Path(sys.prefix) / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages/pyspark"
    if not (folder / "bin" / "spark-submit").exists():
        raise UsageError(f"no Spark in {folder}: run: make setup, and use {REPOSITORY}/.venv/bin/python")
    return folder

"""Where the services of a home answer, as long as they run."""

from __future__ import annotations

import json
from collections.abc import MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from include.errors import ClickmillError, UsageError
from ops.home import Home, Secrets, find_home, load_secrets
from ops.services.supervisor import Supervisor


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
        return _address(self.airflow_port)

    @property
    def data_quality_url(self) -> str:
        """The pages on data quality in Airflow's UI."""
        return f"{self.airflow_url}/plugin/data-quality"

    @property
    def spark_ui_url(self) -> str:
        """Spark's own UI and its REST API (/api/v1)."""
        return _address(self.spark_ui_port)

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
        return _job_environment(self.home, self.spark_remote, self.spark_ui_port, self.airflow_port)


def _address(port: int) -> str:
    return f"http://localhost:{port}"


def _job_environment(home: Path, remote: str, spark_ui_port: int, airflow_port: int) -> dict[str, str]:
    return {
        "CLICKMILL_HOME": str(home),
        "SPARK_REMOTE": remote,
        "CLICKMILL_SPARK_UI_URL": _address(spark_ui_port),
        "CLICKMILL_AIRFLOW_URL": _address(airflow_port),
        "AIRFLOW_HOME": str(Home(home).airflow),
        "GX_ANALYTICS_ENABLED": "false",
    }


@dataclass(frozen=True)
class Ports:
    """The ports of one home's services."""

    airflow: int
    spark: int
    spark_ui: int


def read_ports(home: Home) -> Ports | None:
    """Return the ports that were written down, None if there are none."""
    try:
        content = json.loads(home.service_file.read_text(encoding="utf-8"))
        return Ports(**{name: int(content[name]) for name in ("airflow", "spark", "spark_ui")})
    except (OSError, ValueError, KeyError):
        return None


def require_same_data(home: Home) -> None:
    """See to it that this process means the data that the home's services have.

    Raises:
        UsageError: if they were started with another CLICKMILL_DATA.
    """
    with suppress(OSError, ValueError, KeyError):
        of_services = json.loads(home.service_file.read_text(encoding="utf-8"))["data"]
        if of_services != str(home.data):
            raise UsageError(
                f"the services of {home.path} run on the data in {of_services}, and CLICKMILL_DATA says {home.data}: "
                "set it as when they were started, or end them first"
            )


def services_of(home: Home, ports: Ports, keys: Secrets) -> Services:
    """Return the services of a home at these ports."""
    return Services(
        home=home.path,
        airflow_port=ports.airflow,
        spark_port=ports.spark,
        spark_ui_port=ports.spark_ui,
        airflow_user="admin",
        airflow_password=keys.airflow_password,
        spark_token=keys.spark_token,
    )


def write_remote(home: Home, ports: Ports) -> None:
    """Tell jobs run by hand where Spark is, and the token."""
    file = home.spark_remote_file
    file.touch(mode=0o600)
    file.write_text(services_of(home, ports, load_secrets(home)).spark_remote + "\n", encoding="utf-8")


def running_ports(home: Home) -> Ports:
    """Return the ports of running services.

    Raises:
        ClickmillError: when they do not run.
    """
    ports = read_ports(home)
    if ports is None or not Supervisor(home).is_up():
        raise ClickmillError(f"no services run for {home.path}; run: make run, or clickmill start")
    require_same_data(home)
    return ports


def running_services(home: Path | str | None = None) -> Services:
    """Return where the running services are.

    Raises:
        ClickmillError: when they do not run.
    """
    place = find_home(home)
    return services_of(place, running_ports(place), load_secrets(place))


def complete_environment(environment: MutableMapping[str, str]) -> None:
    """Add what a job needs to know of the home's services; nothing that is there already is changed.

    Not where SPARK_REMOTE names a server, or spark-submit has started one.

    Raises:
        UsageError: if the services were started with another CLICKMILL_DATA.
    """
    environment.setdefault("GX_ANALYTICS_ENABLED", "false")
    home = find_home(environment=environment)
    ports = read_ports(home)
    if ports is None or "SPARK_REMOTE" in environment or "PYSPARK_GATEWAY_PORT" in environment:
        return
    require_same_data(home)
    with suppress(FileNotFoundError):  # ended meanwhile
        remote = home.spark_remote_file.read_text(encoding="utf-8").strip()
        for name, value in _job_environment(home.path, remote, ports.spark_ui, ports.airflow).items():
            environment.setdefault(name, value)

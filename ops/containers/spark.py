"""Spark's programs, each in a container of its own: their settings, and their command lines."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

from include.home import REPOSITORY
from ops.home import Home
from ops.services.environment import render_settings

#: The second has what the containers set otherwise; of two lines for one setting Spark takes the last.
_TEMPLATES = ("spark-defaults.conf", "containers/spark.conf")
_CLASSES = "org.apache.spark.deploy"


def write_settings(home: Home, program: str, environment: Mapping[str, str]) -> Path:
    """Render the settings for one program, which hold a secret; the file."""
    file = home.run / f"{program}.conf"
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "w") as stream:
        for template in _TEMPLATES:
            text = (REPOSITORY / "config" / template).read_text(encoding="utf-8")
            stream.write(render_settings(text, environment, template))
    return file


def _here() -> str:
    """This container's address: others do not know it by its host's name."""
    return socket.gethostbyname(socket.gethostname())


def _master(spark: Path, settings: Path, environment: Mapping[str, str]) -> list[str]:
    ports = ("--host", "spark-master", "--port", "7077", "--webui-port", "8080")
    return [f"{spark}/bin/spark-class", f"{_CLASSES}.master.Master", *ports, "--properties-file", str(settings)]


def _worker(spark: Path, settings: Path, environment: Mapping[str, str]) -> list[str]:
    here = ("--host", _here(), "--webui-port", "8081", "--work-dir", environment["SPARK_LOCAL_DIRS"])
    master = environment["CLICKMILL_SPARK_MASTER"]
    return [f"{spark}/bin/spark-class", f"{_CLASSES}.worker.Worker", *here, "--properties-file", str(settings), master]


def _history(spark: Path, settings: Path, environment: Mapping[str, str]) -> list[str]:
    return [f"{spark}/bin/spark-class", f"{_CLASSES}.history.HistoryServer", "--properties-file", str(settings)]


def _connect(spark: Path, settings: Path, environment: Mapping[str, str]) -> list[str]:
    return [f"{spark}/bin/spark-submit", "--properties-file", str(settings), f"{REPOSITORY}/ops/connect_server.py"]


#: By name, what makes the command line of Spark's home, the file of settings and the environment.
SPARK_PROGRAMS: dict[str, Callable[[Path, Path, Mapping[str, str]], list[str]]] = {
    "spark-master": _master,
    "spark-worker": _worker,
    "spark-history": _history,
    "spark-connect": _connect,
}

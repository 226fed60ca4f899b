"""Spark's programs, each in a container of its own: their settings, and their command lines."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import gettempdir

from include.home import REPOSITORY
from ops.home import Home
from ops.services.environment import render_settings

#: The second has what the containers set otherwise; of two lines for one setting Spark takes the last.
_TEMPLATES = ("spark-defaults.conf", "containers/spark.conf")
_CLASSES = "org.apache.spark.deploy"


def write_settings(program: str, environment: Mapping[str, str]) -> Path:
    """Render the settings for one program into the container's own /tmp, since they hold a secret; the file.

    Raises:
        UsageError: if the environment lacks what they need.
    """
    file = Path(gettempdir()) / f"{program}.conf"
    texts = [(REPOSITORY / "config" / template).read_text(encoding="utf-8") for template in _TEMPLATES]
    rendered = [render_settings(text, environment, name) for text, name in zip(texts, _TEMPLATES, strict=True)]
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.writelines(rendered)
    return file


def empty_folders(home: Home, program: str, environment: Mapping[str, str]) -> None:
    """Remove what the program has left in its folders, if it was killed."""
    folders = [Path(environment["SPARK_LOCAL_DIRS"])]
    if program == "spark-connect":
        # Shared by all containers, but of its own.
        home.spark_local.mkdir(exist_ok=True)
        folders.append(home.spark_local)
    for folder in folders:
        for left in folder.iterdir():
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)


def _here() -> str:
    """This container's address: others do not know it by its host's name."""
    return socket.gethostbyname(socket.gethostname())


def _master(spark: Path, settings: Path, environment: Mapping[str, str]) -> list[str]:
    ports = ("--host", "spark-master", "--port", "7077", "--webui-port", "8080")
    return [f"{spark}/bin/spark-class", f"{_CLASSES}.master.Master", *ports, "--properties-file", str(settings)]


def _worker(spark: Path, settings: Path, environment: Mapping[str, str]) -> list[str]:
    # Apart from what executors keep while they run: the worker cleans this folder.
    here = ("--host", _here(), "--webui-port", "8081", "--work-dir", f"{environment['SPARK_LOCAL_DIRS']}/applications")
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

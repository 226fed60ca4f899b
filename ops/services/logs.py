"""What the services have logged, and what to say of one that failed."""

from __future__ import annotations

import os
from pathlib import Path

from include.errors import ClickmillError
from ops.home import Home
from ops.services.programs import SPARK


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


def failure(home: Home, name: str, problem: str) -> ClickmillError:
    """Say which service failed, with its last log lines and where the rest is."""
    shown: list[str] = []
    for path in log_files(home, name):
        lines = last_lines(path)
        if lines:
            shown += [f"--- {path}", *lines]
    where = "its last log lines are above" if shown else "it left no log"
    return ClickmillError("\n".join((*shown, f"{name} {problem}; {where}; all logs are in {home.logs}")))

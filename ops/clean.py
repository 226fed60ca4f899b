"""Remove one home's data: `make clean`. The set-up (.venv, .jars) and the configuration stay."""

from __future__ import annotations

import shutil

from include.errors import UsageError
from ops.home import SPARK_TOKEN, Home, find_home
from ops.services.stop import stop


def clean() -> str:
    """End the services, remove the home, and return what was done in one line.

    Only what Clickmill makes is removed: a home that someone put into a folder with other things keeps those.

    Raises:
        UsageError: when the folder is not one of Clickmill's.
    """
    folders = find_home()
    # What other machines may share stays.
    home, kept = Home(folders.path), "" if folders.data == folders.path else f"; the data in {folders.data} stays"
    if not home.path.exists():
        return f"nothing to clean: there is no {home.path}"
    if not (home.secrets / SPARK_TOKEN).exists() and any(home.path.iterdir()):
        raise UsageError(
            f"{home.path} is not a Clickmill home (no secrets/{SPARK_TOKEN} in it), so nothing was removed: "
            "check CLICKMILL_HOME, or remove the folder yourself",
        )
    if any(home.received.rglob("*.log*")):
        raise UsageError(
            f"{home.received} holds lines that were acknowledged and are nowhere else, so nothing was removed: start "
            "the receiver once more (clickmill receive), or remove the folder yourself"
        )
    stop(home.path)
    # The secrets last: while they are there, a clean that was interrupted can be run again.
    for folder in (
        home.landing, home.lake, home.reports, home.airflow, home.logs, home.run,
        home.kafka_topics, home.streams, home.received, home.secrets,
    ):  # fmt: skip
        if folder.is_symlink():
            folder.unlink()
        elif folder.exists():
            shutil.rmtree(folder)
    for index in home.path.glob(f"{home.quality_index.name}*"):
        index.unlink()
    left = sorted(entry.name for entry in home.path.iterdir())
    if left:
        return f"cleaned {home.path}; left there, not Clickmill's: {', '.join(left)}{kept}"
    if not home.path.is_symlink():
        home.path.rmdir()
    return f"removed {home.path}{kept}"

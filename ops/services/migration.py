"""Airflow's database, brought to the version that is installed."""

from __future__ import annotations

import hashlib
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from include import lake_pool
from include.home import REPOSITORY
from ops.home import Home
from ops.services.logs import failure
from ops.services.programs import MIGRATION


def migration_stamp(home: Home, environment: Mapping[str, str]) -> str:
    """What the migrated database depends on: Airflow's version, the pool that it has, and which database it is."""
    database = environment.get("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "")
    return hashlib.sha256(f"{version('apache-airflow-core')} {lake_pool.NAME} {database}".encode()).hexdigest()


def _stamp_file(home: Home) -> Path:
    return home.airflow / "migrated"


def _own_database(home: Home) -> Path:
    return home.airflow / "airflow.db"


def begin_migration(home: Home, environment: Mapping[str, str]) -> subprocess.Popen[bytes] | None:
    """Start the migration unless this version has done it for this database."""
    stamp = _stamp_file(home)
    own = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN" not in environment
    # Only the home's own database is as old as its stamp: a server's may have been emptied meanwhile.
    if not own or not _own_database(home).exists():
        stamp.unlink(missing_ok=True)
    if stamp.exists() and stamp.read_text(encoding="utf-8") == migration_stamp(home, environment):
        return None
    with (home.logs / f"{MIGRATION}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "ops.airflow_database"],
            env=dict(environment), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            cwd=REPOSITORY, start_new_session=True,
        )  # fmt: skip


def end_migration(
    home: Home, migration: subprocess.Popen[bytes], environment: Mapping[str, str], timeout: float
) -> None:
    """Wait for the migration, and write down that it was done."""
    try:
        code = migration.wait(timeout=max(1.0, timeout))
    except subprocess.TimeoutExpired:
        raise failure(home, MIGRATION, "took too long") from None
    if code != 0:
        raise failure(home, MIGRATION, f"ended with exit code {code}")
    database = _own_database(home)
    if "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN" not in environment and database.exists():
        # Readers and the one writer no longer wait for each other; SQLite keeps the mode in the file.
        connection = sqlite3.connect(database)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.close()
    _stamp_file(home).write_text(migration_stamp(home, environment), encoding="utf-8")

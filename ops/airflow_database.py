"""Airflow's tables in its database, of the version that is installed, and the pool of the lake's tasks.

Run as a process, `python -m ops.airflow_database`: Airflow takes seconds to import.
"""

from __future__ import annotations

import sys

from include import lake_pool
from include.command import exit_with


def main() -> None:
    """Make what is not there; slots that a person has changed stay as they are."""
    from airflow.__main__ import main as airflow

    sys.argv = ["airflow", "db", "migrate"]
    airflow()  # type: ignore[no-untyped-call]
    from airflow.models.pool import Pool

    if Pool.get_pool(lake_pool.NAME) is None:
        Pool.create_or_update_pool(lake_pool.NAME, lake_pool.SLOTS, lake_pool.DESCRIPTION, include_deferred=False)


if __name__ == "__main__":
    exit_with(main, "airflow-database")

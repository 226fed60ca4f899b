"""After the tests that run DAGs, Spark goes on alone: Airflow would slow down all tests that follow."""

from __future__ import annotations

from pathlib import Path

import pytest

from ops.home import Home
from ops.services.programs import AIRFLOW, TRIGGERER
from ops.services.supervisor import Supervisor
from tests.conftest import SERVICES

_HERE = Path(__file__).parent


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End Airflow after the last of these tests, when their own fixtures are gone."""
    services = item.config.stash.get(SERVICES, None)
    if services is None or (nextitem is not None and nextitem.path.is_relative_to(_HERE)):
        return
    supervisor = Supervisor(Home(services.home))
    for name in (*AIRFLOW, TRIGGERER):
        supervisor.stop(name)

"""Airflow's roles for a team, and its first user: python -m ops.containers.roles.

| role | may |
| --- | --- |
| Viewer | see DAGs, runs, logs and the pages on data quality (Airflow's own role) |
| Operator | the same; start, clear and end runs and backfills, pause DAGs, but for those of a Steward |
| Approver | the same as Viewer; answer whether held hours and staged backfills are published |
| Steward | the same as Viewer; run the DAGs that take back or change what is there, and answer whether to erase |
| Admin | all (Airflow's own role) |

A user may have several.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from airflow.providers.fab.auth_manager.cli_commands.utils import get_application_builder
from airflow.providers.fab.auth_manager.security_manager.override import FabAirflowSecurityManagerOverride
from airflow.providers.fab.www.security import permissions as names

from include.command import exit_with
from include.errors import ClickmillError
from include.home import REPOSITORY

#: The first user's name.
ADMIN = "admin"
#: The DAGs in which an Approver is asked.
_ASKING = ("held_hours", "backfill_clicks")
_SEE = FabAirflowSecurityManagerOverride.VIEWER_PERMISSIONS
#: The DAGs that take back or change what is there.
_ACTING = ("erase_visitor", "replay_quarantined", "undo_backfill")
#: All others. A right to edit all DAGs would be one to trigger all.
_RUNNING = sorted({dag.stem for dag in (REPOSITORY / "dags").glob("*.py")}.difference(_ACTING))
_RUNS = [
    *((action, resource) for action in (names.ACTION_CAN_CREATE, names.ACTION_CAN_EDIT) for resource in (
        names.RESOURCE_DAG_RUN, names.RESOURCE_TASK_INSTANCE, names.RESOURCE_BACKFILL,
    )),
]  # fmt: skip


def _edit(dags: Iterable[str]) -> list[tuple[str, str]]:
    return [(names.ACTION_CAN_EDIT, names.resource_name(dag, names.RESOURCE_DAG)) for dag in dags]


#: Of the DAGs that one may edit.
_ANSWER = [
    (names.ACTION_CAN_EDIT, names.RESOURCE_HITL_DETAIL),
    (names.ACTION_CAN_ACCESS_MENU, names.RESOURCE_HITL_DETAIL),
]
#: Requests to erase are in variables.
_REQUESTS = [
    (action, names.RESOURCE_VARIABLE)
    for action in (names.ACTION_CAN_CREATE, names.ACTION_CAN_READ, names.ACTION_CAN_EDIT, names.ACTION_CAN_DELETE)
] + [(names.ACTION_CAN_ACCESS_MENU, names.RESOURCE_VARIABLE), (names.ACTION_CAN_ACCESS_MENU, names.RESOURCE_ADMIN_MENU)]
ROLES = {
    "Operator": [*_SEE, *_RUNS, *_edit(_RUNNING)],
    "Approver": [*_SEE, *_ANSWER, *_edit(_ASKING)],
    "Steward": [*_SEE, *_RUNS, *_ANSWER, *_edit(_ACTING), *_REQUESTS],
}


def main() -> None:
    """Make what is not there. Roles get what they lack; a user that is there keeps the password.

    Raises:
        ClickmillError: if Airflow does not make the user.
    """
    with get_application_builder() as builder:
        security = builder.sm
        security.sync_roles()
        # Else API server and DAG processor both make them when the first DAG is read, and one of them fails.
        for dag in (REPOSITORY / "dags").glob("*.py"):
            security.sync_perm_for_dag(dag.stem)
        security.bulk_sync_roles([{"role": role, "perms": perms} for role, perms in ROLES.items()])
        if security.find_user(ADMIN) is None:
            role, password = security.find_role("Admin"), os.environ["CLICKMILL_ADMIN_PASSWORD"]
            if not security.add_user(ADMIN, "Admin", "of Clickmill", "admin@localhost", role, password=password):
                raise ClickmillError(f"Airflow did not make the user {ADMIN}; its lines above say why")
    print(f"prepare: roles {', '.join(ROLES)} and the user {ADMIN} are there", flush=True)


if __name__ == "__main__":
    exit_with(main, "prepare")

"""What whoever looks at a page may do: Airflow's permissions, asked so that a page offers nothing that is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from fastapi import Depends, HTTPException, Request

HELD_HOURS, BACKFILL_CLICKS = "held_hours", "backfill_clicks"
REPLAY_QUARANTINED, UNDO_BACKFILL = "replay_quarantined", "undo_backfill"

may_start_backfills = requires_access_dag("POST", DagAccessEntity.RUN, BACKFILL_CLICKS)


@dataclass(frozen=True)
class Rights:
    """Whether to answer the questions about held hours and about staged backfills; and which runs to start."""

    decide_hours: bool = False
    decide_backfills: bool = False
    backfill: bool = False
    replay: bool = False
    undo: bool = False


_PERMISSIONS = {
    "decide_hours": requires_access_dag("PUT", DagAccessEntity.HITL_DETAIL, HELD_HOURS),
    "decide_backfills": requires_access_dag("PUT", DagAccessEntity.HITL_DETAIL, BACKFILL_CLICKS),
    "backfill": may_start_backfills,
    "replay": requires_access_dag("POST", DagAccessEntity.RUN, REPLAY_QUARANTINED),
    "undo": requires_access_dag("POST", DagAccessEntity.RUN, UNDO_BACKFILL),
}


def rights_of(request: Request, user: GetUserDep) -> Rights:
    """Those of whoever asks."""

    def has(permission: Callable[[Request, GetUserDep], None]) -> bool:
        try:
            permission(request, user)
        except HTTPException:
            return False
        return True

    return Rights(**{name: has(permission) for name, permission in _PERMISSIONS.items()})


UserRights = Annotated[Rights, Depends(rights_of)]

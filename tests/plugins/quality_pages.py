"""What tests of the pages on data quality ask for, and runs that the pages find in Airflow."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.models.dagrun import DagRun
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from fastapi import FastAPI
from sqlalchemy.orm import Session
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from plugins.data_quality_plugin import PREFIX

HOUR = "2026-03-01T05"
#: As they come in logs: markup, quotes, a script link, a mark that turns the reading direction, an escape sequence.
EVIL = "<script>alert('x')</script>\"' onload=alert(1) javascript:alert(2) \u202egpj.exe\x1b[2J"


def client_of(app: FastAPI) -> TestClient:
    return TestClient(Starlette(routes=[Mount(PREFIX, app)]), base_url=f"http://testserver{PREFIX}/")


def dag_run(session: Session, run_id: str, partition_key: str | None, **values: Any) -> None:
    run = DagRun(
        dag_id=values.pop("dag_id", "clicks_hourly"),
        run_id=run_id,
        run_type=DagRunType.MANUAL,
        state=values.pop("state", DagRunState.SUCCESS),
        triggered_by=DagRunTriggeredByType.REST_API,
        run_after=values.pop("run_after", datetime(2026, 3, 1, 6, tzinfo=UTC)),
        partition_key=partition_key,
        **values,
    )
    session.add(run)
    session.commit()

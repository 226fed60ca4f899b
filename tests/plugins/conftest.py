"""The pages on data quality over an empty Airflow, and somebody who may see them all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from airflow.api_fastapi.common.db.common import _get_session
from airflow.models import import_all_models
from airflow.models.dagrun import DagRun
from fastapi import FastAPI
from sqlalchemy import create_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import StaticPool
from starlette.testclient import TestClient

from include.settings import Settings
from plugins.data_quality import app as pages
from plugins.data_quality.rights import Rights, rights_of
from tests.plugins.quality_pages import client_of

#: Those that the pages read, and what they refer to.
TABLES = ("dag_run", "dag_version", "hitl_detail", "log_template", "task_instance")


@pytest.fixture
def session() -> Iterator[Session]:
    """Airflow's tables, empty, in memory."""
    import_all_models()  # tables refer to others
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    tables = DagRun.metadata.tables
    DagRun.metadata.create_all(engine, tables=[tables[name] for name in TABLES])
    with Session(engine) as session:
        yield session
    engine.dispose()


@pytest.fixture
def app(settings: Settings, session: Session) -> FastAPI:
    app = pages.make_app(settings)
    app.dependency_overrides[_get_session] = lambda: session
    return app


@pytest.fixture
def rights(app: FastAPI) -> Rights:
    """All of them."""
    return grant(app, Rights(True, True, True, True, True))


def grant(app: FastAPI, rights: Rights) -> Rights:
    """Whoever asks from now on has these."""
    app.dependency_overrides[rights_of] = lambda: rights
    return rights


@pytest.fixture
def client(app: FastAPI, rights: Rights) -> TestClient:
    """Of someone who may see and do everything."""
    guards = (pages.may_see_airflow, pages.may_read_clicks_hourly, pages.may_read_the_run, pages.may_start_backfills)
    for guard in guards:
        app.dependency_overrides[guard] = lambda: None
    return client_of(app)

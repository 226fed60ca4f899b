"""The pages on data quality over an empty Airflow, and somebody who may see them all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from airflow.api_fastapi.common.db.common import _get_session
from airflow.models.dagrun import DagRun
from fastapi import FastAPI
from sqlalchemy import create_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import StaticPool
from starlette.testclient import TestClient

from include.settings import Settings
from plugins.data_quality import app as pages
from tests.plugins.quality_pages import client_of


@pytest.fixture
def session() -> Iterator[Session]:
    """Airflow's tables, empty, in memory."""
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    tables = DagRun.metadata.tables
    DagRun.metadata.create_all(engine, tables=[tables["dag_run"], tables["log_template"]])
    with Session(engine) as session:
        yield session
    engine.dispose()


@pytest.fixture
def app(settings: Settings, session: Session) -> FastAPI:
    app = pages.make_app(settings)
    app.dependency_overrides[_get_session] = lambda: session
    return app


@pytest.fixture
def client(app: FastAPI) -> TestClient:
    """Of someone who may see everything."""
    for guard in (pages.may_see_airflow, pages.may_read_clicks_hourly, pages.may_read_the_run):
        app.dependency_overrides[guard] = lambda: None
    return client_of(app)

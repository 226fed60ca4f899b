"""Whose Spark a job works on."""

from __future__ import annotations

import pytest

from include import only_spark
from include.errors import ClickmillError, UsageError
from include.locks import locks_of
from include.settings import Settings
from spark_jobs.engine.session import spark_session


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """As spark-submit starts a job."""
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    # Such a job drops it; the other tests of this process, which use a server, are to have it again.
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    monkeypatch.setattr(only_spark, "PATIENCE_SECONDS", 0.2)


@pytest.mark.usefixtures("submitted")
def test_a_job_of_spark_submit_uses_no_server(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost:15002")
    with pytest.raises(UsageError, match=r"SPARK_REMOTE is set, .* unset it"):
        spark_session(settings).__enter__()


@pytest.mark.usefixtures("submitted")
def test_a_job_of_spark_submit_is_refused_beside_another_driver(settings: Settings) -> None:
    left = settings.scratch / "of-a-running-job"
    left.mkdir(parents=True)
    with locks_of(settings).held("spark-server"), pytest.raises(ClickmillError, match="has a Spark driver already"):
        spark_session(settings).__enter__()
    assert left.exists(), "what another job has staged stays"

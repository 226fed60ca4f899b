"""Questions that DAGs ask a person and nobody has answered, as Airflow has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.models.dagrun import DagRun
from airflow.models.hitl import HITLDetail
from airflow.models.taskinstance import TaskInstance
from airflow.utils.state import TaskInstanceState
from fastapi import Depends
from sqlalchemy import select

from include.backfills import Backfill
from include.errors import UsageError
from include.job_arguments import JobArguments, arguments_of_run
from plugins.data_quality.rights import BACKFILL_CLICKS, HELD_HOURS


@dataclass(frozen=True)
class Questions:
    """The runs whose task ``ask`` waits for an answer: by click hour, and by what a staged backfill is of.

    Of several about the same, the newest.
    """

    by_hour: Mapping[str, str]
    by_backfill: Mapping[JobArguments, str]

    def of_backfill(self, backfill: Backfill) -> str | None:
        """The run that asks about a staged backfill; None if none does."""
        is_asked = backfill.state == "waiting"
        return self.by_backfill.get(JobArguments(backfill.source, backfill.log_hours)) if is_asked else None


def open_questions(session: SessionDep) -> Questions:
    """All that are open now."""
    of_hours = ((str(conf.get("hour")), run_id) for run_id, conf in _open(session, HELD_HOURS))
    of_backfills = ((asked_of(conf), run_id) for run_id, conf in _open(session, BACKFILL_CLICKS))
    return Questions(dict(of_hours), {asked: run_id for asked, run_id in of_backfills if asked})


def _open(session: SessionDep, dag_id: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Run id and conf, oldest first."""
    runs = session.execute(
        select(DagRun.run_id, DagRun.conf)
        .join(TaskInstance, (TaskInstance.dag_id == DagRun.dag_id) & (TaskInstance.run_id == DagRun.run_id))
        .join(HITLDetail, HITLDetail.ti_id == TaskInstance.id)
        .where(
            DagRun.dag_id == dag_id,
            TaskInstance.task_id == "ask",
            TaskInstance.state == TaskInstanceState.AWAITING_INPUT,
            HITLDetail.responded_at.is_(None),
        )
        .order_by(DagRun.id)
    )
    return ((run_id, conf or {}) for run_id, conf in runs)


def asked_of(conf: Mapping[str, Any], partition_key: str | None = None) -> JobArguments | None:
    """What a run is of: the hours of its form, its partition, the hour that held_hours asks about; None for none."""
    # Other DAGs' runs may have anything in their conf.
    texts = {name: value for name, value in conf.items() if isinstance(value, str)}
    try:
        return arguments_of_run({"source": "all", "from": None, "to": None} | texts, partition_key or texts.get("hour"))
    except UsageError:
        return None


OpenQuestions = Annotated[Questions, Depends(open_questions)]

"""What the tasks of the DAG backfill_clicks do: the commands backfill_clicks and decide_backfill, step by step."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from dags.tasks.launch import asked_again, final_errors, log_lines, question, said
from dags.tasks.notes import leave_note, skipped
from include.errors import UsageError
from include.log_hours import Hour, HourRange
from include.settings import Settings

log = logging.getLogger("clickmill")

#: The keys under which plan_backfill leaves word of the backfill's id, and end_backfill of the counts compared, and
#: of where the comparison is.
BACKFILL, COUNTS, PAGE = "backfill_id", "counts", "page"
#: Log hours of a chunk, unless the form says.
CHUNK_HOURS = 168
#: The reason in an answer.
WHY = "why"
#: What can be answered, and the decision that it is.
ANSWERS = {"Approve": "approve", "Drop": "drop"}


def plan(params: Mapping[str, Any], spark: Any, task_instance: Any) -> list[dict[str, str]]:
    """Say the plan, and begin the backfill or go on with it; returns the chunks to run.

    Raises:
        AirflowSkipException: if only the plan was asked for.
        AirflowFailException: if the form is wrong, or something blocks the backfill; then nothing is changed.
    """
    from airflow.sdk.exceptions import AirflowFailException

    job, settings = _job(spark)
    with final_errors():
        planned = job.plan(spark, settings, _request(params))
    for line in import_module("spark_jobs.backfill.shown_plan").plan_lines(planned):
        log.info(line)
    if params["plan_only"]:
        raise skipped("only the plan was asked for: it is in the log of plan_backfill, and nothing was done")
    if planned.blocks:
        raise AirflowFailException(said("; ".join(planned.blocks)))
    backfill = job.start(spark, settings, planned, because=params["reason"] or "")
    task_instance.xcom_push(key=BACKFILL, value=backfill.id)
    log.info("%s: %d chunks to run", backfill.described, len(planned.chunks))
    return [
        {"backfill_id": backfill.id, "start": str(chunk.log_hours.start), "end": str(chunk.log_hours.end)}
        for chunk in planned.chunks
    ]


def run_chunk(backfill_id: str, start: str, end: str, spark: Any) -> None:
    """Run one chunk. That critical checks fail holds what they touch, and is said in the run's note."""
    _, settings = _job(spark)
    chunks = import_module("spark_jobs.backfill.chunks")
    with final_errors():
        done = chunks.run_chunk(spark, settings, backfill_id, HourRange(Hour.parse(start), Hour.parse(end)))
    for line in done.lines:
        log.info(line)
    for failure in done.failures:
        log.error(failure)
    if done.failures:
        leave_note(f"log hours {start} to {end}: critical checks failed, and hold what they touch")


def end(spark: Any, task_instance: Any) -> list[str]:
    """Compare a staged backfill, or say that another has ended; returns a few lines on it.

    Raises:
        ClickmillError: if chunks are not done.
    """
    from airflow.providers.common.compat.sdk import conf

    job, settings = _job(spark)
    with final_errors():
        ended = job.end(spark, settings, backfill_of(task_instance))
    for line in ended.lines:
        log.info(line)
    task_instance.xcom_push(key=COUNTS, value=ended.backfill.counts if ended.backfill.state == "waiting" else None)
    airflow = conf.get("api", "base_url", fallback="/").rstrip("/")
    page = f"{airflow}/plugin/data-quality/data-quality/backfills/{ended.backfill.id}"
    task_instance.xcom_push(key=PAGE, value=page)
    return list(ended.lines)


def waits_for_decision(task_instance: Any) -> bool:
    """Whether somebody is to be asked."""
    return task_instance.xcom_pull(task_ids="end_backfill", key=COUNTS) is not None


def decide(params: Mapping[str, Any], task_instance: Any, spark: Any) -> None:
    """Do what a person answered about the counts that were compared; who it was goes on record.

    If the counts are others by now, nothing is done but to leave word of the run that compares them and asks again.

    Raises:
        AirflowFailException: if no reason is given, it was decided already, or the answer is not carried out.
    """
    from airflow.sdk.exceptions import AirflowFailException

    _, settings = _job(spark)
    job = import_module("spark_jobs.backfill.decide")
    answer = task_instance.xcom_pull(task_ids="ask")
    (chosen,), by = answer["chosen_options"], answer["responded_by_user"]["name"]
    because = (answer["params_input"] or {}).get(WHY) or ""
    counts = task_instance.xcom_pull(task_ids="end_backfill", key=COUNTS)
    try:
        with final_errors():
            decision = job.BackfillDecision(backfill_of(task_instance), ANSWERS[chosen], by, because, counts)
            lines = job.decide(spark, settings, decision)
    except job.ComparedAgainError as error:
        run_id = f"{error.backfill.id}_{error.backfill.counts}"
        again = {"trigger_run_id": run_id, "conf": dict(params), "note": f"{by}: {chosen}: {error}"}
        raise asked_again(task_instance, again, error) from error
    except AirflowFailException as error:
        said(f"not carried out: {error}")
        raise
    said(lines[0])
    log_lines(lines, settings)


def held(spark: Any, task_instance: Any) -> list[dict[str, Any]]:
    """For each click hour of the backfill that is held, the run of held_hours that asks about it."""
    job, settings = _job(spark)
    states = job.held(spark, settings, backfill_of(task_instance))
    return [question(state) for state in states]


def backfill_of(task_instance: Any) -> str:
    """The id of this run's backfill."""
    return str(task_instance.xcom_pull(task_ids="plan_backfill", key=BACKFILL))


def _request(params: Mapping[str, Any]) -> Any:
    if not (params["from"] and params["to"]):
        raise UsageError("no hours given: fill in from and to, such as 2026-03-01T05:00:00Z")
    hours = HourRange(Hour.parse(params["from"]), Hour.parse(params["to"]))
    request = import_module("spark_jobs.backfill.plan").Request
    return request(params["source"], hours, params["chunk"] or CHUNK_HOURS, params["staged"])


def _job(spark: Any) -> tuple[Any, Settings]:
    import_module("spark_jobs.engine.session").configure(spark)
    return import_module("spark_jobs.backfill.job"), Settings.from_environment()

"""# Backfill of a range

**Arrives:** log hours of one source that landed, or landed again.
**Leaves:** what `clicks_hourly` leaves, for the whole range; if staged, only once a person has approved it.

`plan_backfill` says in its log what there is and what would be done, and begins; `plan_only` ends there. Each
`run_chunk` ingests, counts, validates and, unless staged, publishes its log hours. `end_backfill` compares what was
staged with what is published: **Data quality**, *Backfills*. `ask` waits for an answer, as long as it takes:
*Required actions*.

- **Approve:** all hours whose checks passed are published, in one commit for each table.
- **Drop:** what was published before stays.

An answer is for the counts that were compared. If they are others by now, `decide_backfill` fails, and another run
compares them and asks again.

**A critical check fails:** what it touches is held, the run's note says so, and the other chunks go on.
**Killed, or cleared:** it goes on with the chunks that are not done. So does another run with the same form.

**Backfill:** this is one; *Trigger → Backfill* of `clicks_hourly` makes a run for each hour. To restore what was
published before: `clickmill undo`.
"""

from __future__ import annotations

from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import DAG, Param, TriggerRule, task
from airflow.sdk.exceptions import AirflowFailException

from dags.tasks.defaults import (
    CHUNK_ON_LAKE,
    DAG_DEFAULTS,
    ON_LAKE,
    WAITS_FOR_A_PERSON,
    log_hours_form,
    optional,
    switch,
)
from dags.tasks.held import question
from dags.tasks.launch import NAME_BY_ANNOUNCEMENT, announce, job_settings, log, log_lines, page_address
from dags.tasks.notes import leave_note, skipped
from dags.tasks.trigger import ask_about_hours, ask_again, asked_again
from include.errors import UsageError
from include.hours import Hour, HourRange
from include.settings import Settings
from include.sources import load_sources

SOURCES = list(load_sources(Settings.from_environment()))


#: The key under which plan_backfill leaves the backfill's id: its result is what Airflow maps over, and may be empty.
BACKFILL = "backfill_id"
#: Log hours of a chunk, unless the form says.
CHUNK_HOURS = 168
#: The reason in an answer.
WHY = "why"
#: What can be answered, and the decision that it is.
ANSWERS = {"Approve": "approve", "Drop": "drop"}

with DAG(
    dag_id="backfill_clicks",
    doc_md=__doc__,
    description="A range of log hours again: planned, in chunks, compared and approved",
    schedule=None,
    is_paused_upon_creation=False,
    params={
        "source": Param(SOURCES[0], enum=SOURCES, description="One source."),
        **log_hours_form("First log hour, on the full hour.", "The log hour after the last one."),
        "chunk": optional("integer", "Log hours of a chunk: each is a task.", default=CHUNK_HOURS, minimum=1),
        "staged": switch("Publish nothing before a person has approved it.", is_on=True),
        "reason": optional("string", "Why; kept on record."),
        "plan_only": switch("Say the plan, and do nothing.", title="plan only"),
    },
    # A staged one waits for a person; others over other hours go on.
    **DAG_DEFAULTS | {"max_active_runs": 8},
) as dag:

    @task.pyspark(conn_id="spark_default", **ON_LAKE)
    def plan_backfill(params: Any = None, ti: Any = None, spark: Any = None) -> list[dict[str, str]]:
        """Say the plan, and begin the backfill or go on with it; the result are the chunks to run.

        Raises:
            AirflowSkipException: if only the plan was asked for.
            AirflowFailException: if the form is wrong, or something blocks the backfill; then nothing is changed.
        """
        from spark_jobs.backfill import job
        from spark_jobs.backfill.plan import Request
        from spark_jobs.backfill.shown_plan import plan_lines

        with job_settings(spark) as settings:
            if not (params["from"] and params["to"]):
                raise UsageError("no hours given: fill in from and to, such as 2026-03-01T05:00:00Z")
            log_hours = HourRange(Hour.parse(params["from"]), Hour.parse(params["to"]))
            request = Request(params["source"], log_hours, params["chunk"] or CHUNK_HOURS, params["staged"])
            plan = job.plan(settings, request)
        log_lines(plan_lines(plan))
        if params["plan_only"]:
            raise skipped("only the plan was asked for: it is in the log of plan_backfill, and nothing was done")
        if plan.blocks:
            raise AirflowFailException(announce("; ".join(plan.blocks)))
        backfill = job.start(spark, settings, plan, because=params["reason"] or "")
        ti.xcom_push(key=BACKFILL, value=backfill.id)
        log.info("%s: %d chunks to run", backfill.described, len(plan.chunks))
        hours = [chunk.log_hours for chunk in plan.chunks]
        return [{"backfill_id": backfill.id, "start": str(chunk.start), "end": str(chunk.end)} for chunk in hours]

    @task.pyspark(
        conn_id="spark_default",
        **CHUNK_ON_LAKE,
        # One at a time: published chunk by chunk, the oldest hours are first.
        map_index_template="{{ task.op_kwargs['start'] }} to {{ task.op_kwargs['end'] }}",
    )
    def run_chunk(backfill_id: str, start: str, end: str, spark: Any = None) -> None:
        """Run one chunk. That critical checks fail holds what they touch, and is said in the run's note."""
        from spark_jobs.backfill.chunks import run_chunk

        with job_settings(spark) as settings:
            chunk = run_chunk(spark, settings, backfill_id, HourRange(Hour.parse(start), Hour.parse(end)))
        log_lines(chunk.lines)
        for failure in chunk.failures:
            log.error(failure)
        if chunk.failures:
            leave_note(f"log hours {start} to {end}: critical checks failed, and hold what they touch")

    # There may be no chunk left to run.
    @task.pyspark(conn_id="spark_default", trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS, **ON_LAKE)
    def end_backfill(backfill_id: str, spark: Any = None) -> dict[str, Any]:
        """Compare a staged backfill, or say that another has ended.

        The result: for whoever is asked a few ``lines`` on it, and the ``page`` of the comparison; which ``counts``
        were compared, null if nobody is to be asked.

        Raises:
            ClickmillError: if chunks are not done.
        """
        from spark_jobs.backfill import job

        with job_settings(spark) as settings:
            ended = job.end(spark, settings, backfill_id)
        log_lines(ended.lines)
        backfill = ended.backfill
        return {
            "backfill_id": backfill.id,
            "lines": list(ended.lines),
            "page": page_address(f"backfills/{backfill.id}"),
            "counts": backfill.counts if backfill.state == "waiting" else None,
        }

    @task.short_circuit(ignore_downstream_trigger_rules=False)
    def waits_for_decision(ended: Any) -> bool:
        """Only a staged backfill is asked about."""
        return ended["counts"] is not None

    ask = HITLOperator(
        task_id="ask",
        subject="Backfill of {{ params.source }}, {{ params['from'] }} to {{ params['to'] }}, waits for approval",
        # No text of a log is in it.
        body="""\
{% for text in ti.xcom_pull(task_ids='end_backfill')['lines'] %}
- {{ text }}
{% endfor %}

[Old against new, hour by hour]({{ ti.xcom_pull(task_ids='end_backfill')['page'] }}). Readers see what was
published before until you decide.
""",
        options=list(ANSWERS),
        # Not reason: Airflow would fill in that of the run.
        params={WHY: Param("", type="string", title="Reason", description="Why; kept on record. Needed.")},
        **WAITS_FOR_A_PERSON,
    )

    @task.pyspark(conn_id="spark_default", map_index_template=NAME_BY_ANNOUNCEMENT, **ON_LAKE)
    def decide_backfill(answer: Any, params: Any = None, ti: Any = None, spark: Any = None) -> None:
        """Do what a person answered about the counts that were compared; who it was goes on record.

        If the counts are others by now, nothing is done but to leave word of the run that compares them and asks again.

        Raises:
            AirflowFailException: if no reason is given, it was decided already, or the answer is not carried out.
        """
        from spark_jobs.backfill.decide import BackfillDecision, ComparedAgainError, decide

        (choice,), by = answer["chosen_options"], answer["responded_by_user"]["name"]
        because = (answer["params_input"] or {}).get(WHY) or ""
        # Pulled: an argument would be one more arrow in the graph.
        ended = ti.xcom_pull(task_ids="end_backfill")
        try:
            with job_settings(spark) as settings:
                decision = BackfillDecision(ended["backfill_id"], ANSWERS[choice], by, because, ended["counts"])
                lines = decide(spark, settings, decision)
        except ComparedAgainError as error:
            run_id = f"{error.backfill.id}_{error.backfill.counts}"
            again = {"trigger_run_id": run_id, "conf": dict(params), "note": f"{by}: {choice}: {error}"}
            raise asked_again(ti, again, error) from error
        except AirflowFailException as error:
            announce(f"not carried out: {error}")
            raise
        announce(lines[0])
        log_lines(lines, settings)

    # Nobody is asked to approve one that is not staged.
    @task.pyspark(conn_id="spark_default", trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS, **ON_LAKE)
    def find_held(ended: Any, spark: Any = None) -> list[dict[str, Any]]:
        """For each click hour of the backfill that is held, the run of held_hours that asks about it."""
        from spark_jobs.backfill import job

        with job_settings(spark) as settings:
            return [question(state) for state in job.held(spark, settings, ended["backfill_id"])]

    planned: Any = plan_backfill()
    chunks = run_chunk.expand_kwargs(planned)
    ended = end_backfill(planned[BACKFILL])
    decided = decide_backfill(ask.output)
    held = find_held(ended)
    chunks >> ended
    waits_for_decision(ended) >> ask
    decided >> ask_again("backfill_clicks", after="decide_backfill")
    decided >> held >> ask_about_hours("ask_about_held", held)

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
published before: `python -m spark_jobs.undo_backfill`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import DAG, Param, TriggerRule, task

from dags.tasks import backfill
from dags.tasks.defaults import CHUNK_ON_LAKE, ON_LAKE, TASK_DEFAULTS, log_hours_form, optional, switch
from dags.tasks.launch import NAME_BY_WHAT_WAS_SAID
from dags.tasks.trigger import ask_about_hours, ask_again
from include.settings import Settings
from include.sources import load_sources

SOURCES = list(load_sources(Settings.from_environment()))


def plan(params: dict[str, Any], ti: Any, spark: Any = None) -> list[dict[str, str]]:
    """The task plan_backfill; its result are the chunks."""
    return backfill.plan(params, spark, ti)


def run_chunk(backfill_id: str, start: str, end: str, spark: Any = None) -> None:
    """The task run_chunk, of one chunk."""
    backfill.run_chunk(backfill_id, start, end, spark)


def end(ti: Any, spark: Any = None) -> list[str]:
    """The task end_backfill; its result is shown to whoever is asked."""
    return backfill.end(spark, ti)


def decide(params: dict[str, Any], ti: Any, spark: Any = None) -> None:
    """The task decide_backfill."""
    backfill.decide(params, ti, spark)


def held(ti: Any, spark: Any = None) -> list[dict[str, Any]]:
    """The task find_held; its result are the runs of held_hours to trigger."""
    return backfill.held(spark, ti)


with DAG(
    dag_id="backfill_clicks",
    doc_md=__doc__,
    description="A range of log hours again: planned, in chunks, compared and approved",
    schedule=None,
    start_date=datetime(2015, 1, 1, tzinfo=UTC),
    catchup=False,
    is_paused_upon_creation=False,
    # A staged one waits for a person; others over other hours go on.
    max_active_runs=8,
    tags=["clickmill"],
    default_args=TASK_DEFAULTS,
    params={
        "source": Param(SOURCES[0], enum=SOURCES, description="One source."),
        **log_hours_form("First log hour, on the full hour.", "The log hour after the last one."),
        "chunk": optional("integer", "Log hours of a chunk: each is a task.", default=backfill.CHUNK_HOURS, minimum=1),
        "staged": switch("Publish nothing before a person has approved it.", is_on=True),
        "reason": optional("string", "Why; kept on record."),
        "plan_only": switch("Say the plan, and do nothing.", title="plan only"),
    },
) as dag:
    plan_backfill = PySparkOperator(task_id="plan_backfill", python_callable=plan, conn_id="spark_default", **ON_LAKE)
    chunks = PySparkOperator.partial(
        task_id="run_chunk",
        python_callable=run_chunk,
        conn_id="spark_default",
        **CHUNK_ON_LAKE,
        # One at a time: published chunk by chunk, the oldest hours are first.
        map_index_template="{{ task.op_kwargs['start'] }} to {{ task.op_kwargs['end'] }}",
    ).expand(op_kwargs=plan_backfill.output)
    end_backfill = PySparkOperator(
        task_id="end_backfill",
        python_callable=end,
        conn_id="spark_default",
        **ON_LAKE,
        # There may be no chunk left to run.
        trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS,
    )

    @task.short_circuit(ignore_downstream_trigger_rules=False)
    def waits_for_decision(ti: Any) -> bool:
        """Only a staged backfill is asked about."""
        return backfill.waits_for_decision(ti)

    ask = HITLOperator(
        task_id="ask",
        subject="Backfill of {{ params.source }}, {{ params['from'] }} to {{ params['to'] }}, waits for approval",
        # No text of a log is in it.
        body="""\
{% for text in ti.xcom_pull(task_ids='end_backfill') %}
- {{ text }}
{% endfor %}

[Old against new, hour by hour]({{ ti.xcom_pull(task_ids='end_backfill', key='page') }}). Readers see what was
published before until you decide.
""",
        options=list(backfill.ANSWERS),
        # Not reason: Airflow would fill in that of the run.
        params={backfill.WHY: Param("", type="string", title="Reason", description="Why; kept on record. Needed.")},
    )
    decide_backfill = PySparkOperator(
        task_id="decide_backfill",
        python_callable=decide,
        conn_id="spark_default",
        map_index_template=NAME_BY_WHAT_WAS_SAID,
        **ON_LAKE,
    )
    find_held = PySparkOperator(
        task_id="find_held",
        python_callable=held,
        conn_id="spark_default",
        **ON_LAKE,
        # Nobody is asked to approve one that is not staged.
        trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS,
    )
    ask_about_held = ask_about_hours("ask_about_held", find_held.output)

    plan_backfill >> chunks >> end_backfill
    plan_backfill >> end_backfill
    end_backfill >> waits_for_decision() >> ask >> decide_backfill  # type: ignore[call-arg]
    decide_backfill >> ask_again("backfill_clicks", after="decide_backfill")
    end_backfill >> find_held
    decide_backfill >> find_held >> ask_about_held

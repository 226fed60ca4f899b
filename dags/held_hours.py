"""# Held click hours

**Arrives:** a click hour that `clicks_hourly` holds because a critical check failed, and why.
**Leaves:** a person's decision on it, done and on record in `quality_results`.

Each run is one hold. `ask` waits for an answer, as long as it takes and without holding a worker: *Required actions*
in Airflow's UI. `decide_held` then does it:

- **Publish anyway:** the counts that failed are published, this once. Counted again, the hour is judged again.
- **Drop:** the counts that failed are not published; what was published before stays.
- **Keep held:** nothing is done. To decide later, clear `ask`, or trigger this DAG by hand with the hour.

An answer is for the counts that were asked about. If they are others by now, nothing is done but to ask again, in
another run, about those that there are.

To lift a hold by fixing: land the log hour again, and run it again in `clicks_hourly` (*Clear*, or *Backfill*). When
the checks pass it is published, and whoever answers here reads that there is nothing left to decide.

**Backfill:** none; there is a run for each hold.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import DAG, Param

from dags.tasks import launch
from dags.tasks.defaults import TASK_DEFAULTS, optional
from dags.tasks.notifications import held_notifiers
from dags.tasks.trigger import ask_about_hours

#: More open questions would be more than a person answers, and the scheduler looks at each every time.
MOST_OPEN_QUESTIONS = 128


def decide(params: dict[str, Any], ti: Any, spark: Any = None) -> list[dict[str, Any]]:
    """The task decide_held; its result is the run that asks again, if one must."""
    return launch.decide(params, ti.xcom_pull(task_ids="ask"), spark)


with DAG(
    dag_id="held_hours",
    doc_md=__doc__,
    description="A person decides what becomes of a click hour that failed a critical check",
    schedule=None,
    start_date=datetime(2015, 1, 1, tzinfo=UTC),
    catchup=False,
    is_paused_upon_creation=False,
    max_active_runs=MOST_OPEN_QUESTIONS,
    tags=["clickmill"],
    default_args=TASK_DEFAULTS,
    params={
        "hour": Param(
            type="string",
            pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}$",
            title="click hour, UTC",
            description="The held click hour, such as 2026-03-01T05.",
        ),
        "reasons": optional("array", "Why it is held; for whoever is asked."),
        "counts": optional("string", "From when the counts are that are asked about; empty by hand."),
        "note": optional("string", "What became of an answer before; for whoever is asked."),
    },
) as dag:
    ask = HITLOperator(
        task_id="ask",
        subject="Click hour {{ params.hour }} is held",
        # As code, since what was found may have a log's text in it.
        body="""\
{% for text in [params.note] + (params.reasons or []) if text %}
    {{ text | replace('\\n', ' ') }}
{% endfor %}

{% if params.counts %}
Found in the counts of {{ params.counts }}. The hour stays as it was last published until you decide, or it is fixed
and run again.
{% else %}
No counts were given: once you have answered, you are asked about the newest.
{% endif %}
""",
        options=[*launch.ANSWERS, launch.KEEP],
        params={
            "reason": Param(
                "", type="string", title="Reason", description="Why; kept on record. Needed, also to keep it held."
            )
        },
        notifiers=held_notifiers(),
    )
    decide_held = PySparkOperator(task_id="decide_held", python_callable=decide, conn_id="spark_default")
    ask_again = ask_about_hours("ask_again", decide_held.output)
    ask >> decide_held >> ask_again

"""# Held click hours

**Arrives:** a click hour that `clicks_hourly` holds because a critical check failed, and why.
**Leaves:** a person's decision on it, done and on record in `quality_results`.

Each run is one hold. `ask` waits for an answer, as long as it takes and without holding a worker: *Required actions*
in Airflow's UI. `decide_held` then does it:

- **Publish anyway:** the counts that failed are published, and so are those that come later.
- **Drop:** the hour stays as it is published, until it is backfilled or a person releases it.
- **Keep held:** nothing is done. To decide later, clear `ask`, or trigger this DAG by hand with the hour.

An answer is for what was found, and stands while the checks find the same or better. Something worse is asked by
another run, and this question ends by itself. If it was found while somebody answered, `decide_held` fails, says in its
name why, and another run asks again.

To lift a hold by fixing: land the log hour again, and run it again in `clicks_hourly` (*Clear*, or *Backfill*). When
the checks pass it is published, and this question ends by itself, within some minutes if it is new.

**Backfill:** none; there is a run for each hold.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator
from airflow.sdk import DAG, Param

from dags.tasks import launch
from dags.tasks.defaults import ON_LAKE, TASK_DEFAULTS
from dags.tasks.held import SHOWN, ask_about_held
from dags.tasks.notifications import held_notifiers
from dags.tasks.trigger import ask_again

#: More open questions would be more than a person answers, and the scheduler looks at each every time.
MOST_OPEN_QUESTIONS = 128


def decide(params: dict[str, Any], ti: Any, spark: Any = None) -> None:
    """The task decide_held."""
    launch.decide(params, ti.xcom_pull(task_ids="ask"), spark, ti, ti.xcom_pull(task_ids="ask", key=SHOWN))


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
            title="click hour, UTC",
            description="The held click hour, such as 2026-03-01T05.",
        ),
    },
) as dag:
    ask = ask_about_held(
        map_index_template=launch.NAME_BY_WHAT_WAS_SAID,
        options=[*launch.ANSWERS, launch.KEEP],
        params={
            "reason": Param(
                "", type="string", title="Reason", description="Why; kept on record. Needed, also to keep it held."
            )
        },
        notifiers=held_notifiers(),
    )
    decide_held = PySparkOperator(
        task_id="decide_held",
        python_callable=decide,
        conn_id="spark_default",
        **ON_LAKE,
        map_index_template=launch.NAME_BY_WHAT_WAS_SAID,
    )
    ask >> decide_held >> ask_again("held_hours", after="decide_held")

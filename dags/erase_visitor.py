"""# Visitors, addresses and URLs erased

**Arrives:** requests, one a line, in an Airflow variable: `{"visitor": "…"}`, `{"address": "…"}` or
`{"url_prefix": "…"}`. **Leaves:** nothing of them in landing files, tables, exports and pages; a certificate in
`reports/erasures/`, which names nobody.

Put the requests into the variable (*Admin*, *Variables*; Airflow encrypts it), then *Trigger*. `plan_erasure` finds
how much there is and changes nothing; `ask` shows it, and what could not be undone any more: *Required actions*.

- **Erase:** all of it goes, for good. When all is erased the variable is removed.
- **Cancel:** nothing is erased, and the variable stays. As long as nobody answers, nothing is erased either.

If more is found by then than was shown, the run's note says so. Who answered, who triggered it and why is on record in
`audit`, before and after. **Killed:** clear `erase_visitor`.

**Backfill:** none.
"""

from __future__ import annotations

from typing import Any

from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import DAG

from dags.tasks import acts
from dags.tasks.defaults import DAG_DEFAULTS, ON_LAKE, optional, reason


def plan(params: dict[str, Any], dag_run: Any, spark: Any = None) -> dict[str, Any]:
    """The task plan_erasure; its result is shown to whoever is asked."""
    return acts.plan_erasure(params, dag_run, spark)


def erase(params: dict[str, Any], dag_run: Any, ti: Any, spark: Any = None) -> None:
    """The task erase_visitor."""
    acts.erase(params, dag_run, ti, spark)


with DAG(
    dag_id="erase_visitor",
    doc_md=__doc__,
    description="Visitors, client addresses or URLs erased from everything that is kept",
    schedule=None,
    is_paused_upon_creation=False,
    params={
        # Whose name has "secret" in it, Airflow masks in logs and pages.
        "variable": optional(
            "string",
            "The variable with the requests, one a line; its name has secret in it.",
            default=acts.REQUESTS,
        ),
        "reason": reason(),
    },
    # An open question keeps no other erasure waiting.
    **DAG_DEFAULTS | {"max_active_runs": 8},
) as dag:
    plan_erasure = PySparkOperator(task_id="plan_erasure", python_callable=plan, conn_id="spark_default", **ON_LAKE)
    ask = HITLOperator(
        task_id="ask",
        subject="An erasure waits for your answer: it cannot be undone",
        # As code; it names nobody.
        body="""\
{% for text in ti.xcom_pull(task_ids='plan_erasure')['lines'] %}
    {{ text }}
{% endfor %}

Asked for by {{ dag_run.triggering_user_name }}. Nothing is erased before you answer.
""",
        options=[acts.ERASE, acts.CANCEL],
    )
    erase_visitor = PySparkOperator(task_id="erase_visitor", python_callable=erase, conn_id="spark_default", **ON_LAKE)
    plan_erasure >> ask >> erase_visitor

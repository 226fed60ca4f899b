"""# Visitors, addresses and URLs erased

**Arrives:** requests, one a line, in an Airflow variable: `{"visitor": "…"}`, `{"address": "…"}` or
`{"url_prefix": "…"}`. **Leaves:** nothing of them in landing files, tables, exports and pages; a certificate in
`reports/erasures/`, which names nobody.

Put the requests into the variable (*Admin*, *Variables*; Airflow encrypts it), then *Trigger*, with `dry_run` first if
you like. When all is erased the variable is removed. Who triggered it and why is on record in `audit`, before and
after. **Killed:** clear the task.

**Backfill:** none.
"""

from __future__ import annotations

from typing import Any

from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator
from airflow.sdk import DAG, Param

from dags.tasks import acts
from dags.tasks.defaults import DAG_DEFAULTS, ON_LAKE, reason


def erase(params: dict[str, Any], dag_run: Any, spark: Any = None) -> None:
    """The task erase_visitor."""
    acts.erase(params, dag_run, spark)


with DAG(
    dag_id="erase_visitor",
    doc_md=__doc__,
    description="Visitors, client addresses or URLs erased from everything that is kept",
    schedule=None,
    is_paused_upon_creation=False,
    params={
        # Whose name has "secret" in it, Airflow masks in logs and pages.
        "variable": Param("erasure_secret", type="string", pattern=r"\w*secret\w*", description="Has the requests."),
        "dry_run": Param(False, type="boolean", description="Only say how much would be erased."),
        "reason": reason(),
    },
    **DAG_DEFAULTS,
) as dag:
    PySparkOperator(task_id="erase_visitor", python_callable=erase, conn_id="spark_default", **ON_LAKE)

"""# Undo a backfill

**Arrives:** a backfill that was published. **Leaves:** for exactly its click hours, what was published before it.

*Trigger* it with the backfill's id (**Data quality**, *Backfills*) and a reason. Who triggered it and why is on record
in `audit`, before it is done and after. What was ingested stays: land the right files, and backfill the hours again.

**Others have published since:** with other counts, of some of its hours, it is refused, unless `force` is on.
**Killed:** clear the task.

**Backfill:** none.
"""

from __future__ import annotations

from typing import Any

from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator
from airflow.sdk import DAG, Param

from dags.tasks import acts
from dags.tasks.defaults import DAG_DEFAULTS, ON_LAKE, reason, switch


def undo(params: dict[str, Any], dag_run: Any, spark: Any = None) -> None:
    """The task undo_backfill."""
    acts.undo(params, dag_run, spark)


with DAG(
    dag_id="undo_backfill",
    doc_md=__doc__,
    description="What was published before a backfill, restored",
    schedule=None,
    is_paused_upon_creation=False,
    params={
        "backfill": Param(
            type="string",
            description="Its id, such as 20260301T050000-1a2b.",
        ),
        "reason": reason(),
        "force": switch("Also of hours that others have published since."),
    },
    **DAG_DEFAULTS,
) as dag:
    PySparkOperator(task_id="undo_backfill", python_callable=undo, conn_id="spark_default", **ON_LAKE)

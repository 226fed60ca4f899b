"""# Undo a backfill

**Arrives:** a backfill that was published. **Leaves:** for exactly its click hours, what was published before it.

*Trigger* it with the backfill's id (**Data quality**, *Backfills*) and a reason. Who triggered it and why is on record
in `journal`, before it is done and after. What was ingested stays: land the right files, and backfill the hours again.

**Others have published since:** with other counts, of some of its hours, it is refused, unless `force` is on.
**Killed:** clear the task.

**Backfill:** none.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, Param, task

from dags.tasks.defaults import DAG_DEFAULTS, ON_LAKE, reason, switch
from dags.tasks.launch import NAME_BY_ANNOUNCEMENT, announce, job_settings, log_lines, signer

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

    @task.pyspark(conn_id="spark_default", map_index_template=NAME_BY_ANNOUNCEMENT, **ON_LAKE)
    def undo_backfill(params: Any = None, dag_run: Any = None, spark: Any = None) -> None:
        """Restore what was published before the backfill."""
        from spark_jobs.backfill.undo import undo

        with job_settings(spark) as settings:
            by, because = signer(dag_run), params["reason"]
            lines = undo(spark, settings, params["backfill"].strip(), by, because, force=params["force"])
            announce(lines[0])
            log_lines(lines, settings)

    undo_backfill()

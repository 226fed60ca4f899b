"""# Daily counts with noise, for readers who get nothing else

**Arrives:** days whose hours are all published. **Leaves:** `released_clicks_by_country_and_url_daily` and
`released_clicks_by_country_daily`, and in `count_releases` what was drawn and spent.

Each run looks at the newest days that may be released, by `[publication.noise]` in `config/pipeline.toml`; without that
section it is skipped. What has been released stays the same, however often it is run.

**Backfill:** `python -m spark_jobs.release_counts --from DAY --to DAY`. **By hand:** *Trigger*, with a number of days.
"""

from __future__ import annotations

from typing import Any

from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator
from airflow.sdk import DAG, Param

from dags.tasks import launch
from dags.tasks.defaults import DAG_DEFAULTS, ON_LAKE


def release(params: dict[str, Any], spark: Any = None) -> None:
    """The task release_counts."""
    launch.release(params["days"], spark)


with DAG(
    dag_id="release_counts",
    doc_md=__doc__,
    description="Daily counts with differentially private noise, once a day's hours are published",
    schedule="47 4 * * *",
    params={"days": Param(7, type="integer", minimum=1, description="So many days, the newest that may be released.")},
    **DAG_DEFAULTS,
) as dag:
    PySparkOperator(task_id="release_counts", python_callable=release, conn_id="spark_default", **ON_LAKE)

"""# Daily counts with noise, for readers who get nothing else

**Arrives:** days whose hours are all published. **Leaves:** `released_clicks_by_country_and_url_daily` and
`released_clicks_by_country_daily`, and in `count_releases` what was drawn and spent.

Each run looks at the newest days that may be released, by `[publication.noise]` in `config/pipeline.toml`; without that
section it is skipped. What has been released stays the same, however often it is run.

**Backfill:** `clickmill release-counts --from DAY --to DAY`. **By hand:** *Trigger*, with a number of days.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowSkipException

from dags.tasks.defaults import DAG_DEFAULTS, ON_LAKE, optional
from dags.tasks.launch import announce, job_settings, log_lines

#: Of the newest days so many are released, unless the form says.
RELEASED_DAYS = 7

with DAG(
    dag_id="release_counts",
    doc_md=__doc__,
    description="Daily counts with differentially private noise, once a day's hours are published",
    schedule="47 4 * * *",
    params={
        "days": optional("integer", "So many days, the newest that may be released.", default=RELEASED_DAYS, minimum=1)
    },
    **DAG_DEFAULTS,
) as dag:

    @task.pyspark(conn_id="spark_default", **ON_LAKE)
    def release_counts(params: Any = None, spark: Any = None) -> None:
        """Release the newest days that late clicks have had time to come to.

        Raises:
            AirflowSkipException: if no noise is configured.
        """
        from spark_jobs.publish.release_counts import release

        with job_settings(spark) as settings:
            noise = settings.pipeline.publication.noise
            if noise is None:
                raise AirflowSkipException(announce(f"{settings.pipeline_file} has no [publication.noise]"))
            end = datetime.now(UTC).date() - timedelta(days=noise.wait_days)
            start = end - timedelta(days=params["days"] or RELEASED_DAYS)
            log_lines(release(spark, settings, start, end), settings)

    release_counts()

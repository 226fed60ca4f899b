"""# Streamed clicks, looked after every few minutes

**Arrives:** clicks as records of the topics, or in landing files, of the streamed sources of `config/sources.toml`.
**Leaves:** `clicks`, `quarantined_clicks`, `stream_batches`, the live counts and `stream_progress`.

Each run reads what is there, into the lake, and ends: no process stays. It goes on where the run before left off,
whatever ended that one; each line is in the lake once. A source whose stream runs by itself (`make stream`,
`python -m spark_jobs.stream_clicks`) is skipped. With `run = "supervised"` a long-lived process streams the source;
each run checks that it is alive and how much it has not read yet, and starts it when it does not run or hangs.
The hourly counts of a scheduled source are made by `clicks_hourly`.

**Backfill:** none; the topic, or the landing zone, says what is there. **By hand:** *Trigger*, with a source or all
scheduled ones.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator
from airflow.sdk import DAG, Param, task

from dags.tasks import launch
from dags.tasks.defaults import TASK_DEFAULTS
from include.settings import Settings
from include.sources import load_sources

SETTINGS = Settings.from_environment()
STREAMED = [name for name, source in load_sources(SETTINGS).items() if source.stream is not None]


def stream(source: str, spark: Any = None) -> None:
    """The task stream_clicks, of one source."""
    launch.stream(source, spark)


with DAG(
    dag_id="clicks_stream",
    doc_md=__doc__,
    description="Clicks of topics and landing files into the lake, every five minutes or all the time",
    schedule="*/5 * * * *",
    start_date=datetime(2015, 1, 1, tzinfo=UTC),
    catchup=False,
    # Two streams on one checkpoint would be refused.
    max_active_runs=1,
    tags=["clickmill"],
    # A run comes every five minutes anyway.
    default_args=TASK_DEFAULTS | {"max_retry_delay": timedelta(minutes=5)},
    params={
        "source": Param("all", enum=["all", *STREAMED], description="A streamed source, or all that are scheduled.")
    },
) as dag:

    @task
    def choose_sources(params: dict[str, Any]) -> list[dict[str, str]]:
        """Which sources to read."""
        return [{"source": name} for name in launch.streamed_sources(params["source"])]

    PySparkOperator.partial(
        task_id="stream_clicks",
        python_callable=stream,
        conn_id="spark_default",
        map_index_template="{{ task.op_kwargs['source'] }}",
    ).expand(op_kwargs=choose_sources())  # type: ignore[call-arg]

"""# Streamed clicks, looked after every few minutes

**Arrives:** clicks as records of the topics, or in landing files, of the streamed sources of `config/sources.toml`.
**Leaves:** `clicks`, `quarantined_clicks`, `stream_batches`, the live counts and `stream_progress`.

Each run reads what is there, into the lake, and ends: no process stays. It goes on where the run before left off,
whatever ended that one; each line is in the lake once. A source whose stream runs by itself (`make stream`,
`clickmill stream`) is skipped. With `run = "supervised"` a long-lived process streams the source;
each run checks that it is alive and how much it has not read yet, and starts it when it does not run or hangs.
The hourly counts of a scheduled source are made by `clicks_hourly`.

**Backfill:** none; the topic, or the landing zone, says what is there. **By hand:** *Trigger*, with a source or all
scheduled ones.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param, task
from airflow.sdk.exceptions import AirflowSkipException

from dags.tasks.defaults import DAG_DEFAULTS, LONGEST_JOB, TASK_DEFAULTS
from dags.tasks.launch import final_errors, job_settings, log
from include import sources
from include.errors import StreamRunsAlreadyError
from include.settings import Settings

SETTINGS = Settings.from_environment()
STREAMED = [name for name, source in sources.load_sources(SETTINGS).items() if source.stream is not None]


with DAG(
    dag_id="clicks_stream",
    doc_md=__doc__,
    description="Clicks of topics and landing files into the lake, every five minutes or all the time",
    schedule="*/5 * * * *",
    params={
        "source": Param("all", enum=["all", *STREAMED], description="A streamed source, or all that are scheduled.")
    },
    # One run at a time: two streams on one checkpoint would be refused. A run comes every five minutes anyway.
    **DAG_DEFAULTS | {"default_args": TASK_DEFAULTS | {"max_retry_delay": timedelta(minutes=5)}},
) as dag:

    @task
    def choose_sources(params: Any = None) -> list[str]:
        """The named streamed source, or with ``all`` every scheduled one."""
        with final_errors():
            settings = Settings.from_environment()
            if params["source"] == "all":
                declared = sources.load_sources(settings).values()
                return [source.name for source in declared if source.stream is not None and source.scheduled]
            (source,) = sources.choose_sources(settings, params["source"])
            sources.stream_of(source)
            return [source.name]

    @task.pyspark(
        conn_id="spark_default", execution_timeout=LONGEST_JOB, map_index_template="{{ task.op_kwargs['source'] }}"
    )
    def stream_clicks(source: str, spark: Any = None) -> None:
        """Stream what the source has now into the lake, or see to it that its stream runs by itself.

        Raises:
            AirflowSkipException: if it is to catch up, and its stream runs by itself.
        """
        from spark_jobs.stream import job
        from spark_jobs.stream.supervision import supervise

        try:
            with job_settings(spark) as settings:
                (streamed,) = sources.choose_sources(settings, source)
                if sources.stream_of(streamed).run == "supervised":
                    log.info(supervise(settings, source))
                else:
                    job.stream(spark, settings, [streamed], available_now=True)
        except StreamRunsAlreadyError as error:
            raise AirflowSkipException(str(error)) from error

    stream_clicks.expand(source=choose_sources())

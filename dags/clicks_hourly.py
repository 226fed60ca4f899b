"""# Clicks, hour by hour

**Arrives:** click logs in the landing zone, `landing/<source>/log_date=YYYY-MM-DD/log_hour=HH/`, closed by `_SUCCESS`.
**Leaves:** `published_clicks_by_url_hourly`, `published_clicks_by_country_hourly`, the same by day (`…_daily`), their
exports, and the report.

Each run is one partition: a log hour, UTC, such as `2026-03-01T05`. It starts when the hour is over, waits for
`_SUCCESS` (at most the source's grace time), and then ingests, aggregates, validates and publishes. A late click
changes the hour in which it happened, so a run may count and publish earlier click hours again.
The first scheduled run is that of the hour in which the services were first started; hours before it are backfills.
If no runs were scheduled for a while, because nothing was running or the DAG was paused, the first one after that takes
the hours in between along, at most a month.

**Backfill:** from the UI (*Trigger → Backfill*), or
`airflow backfill create --dag-id clicks_hourly --from-date 2026-03-01T00:00 --to-date 2026-03-01T11:00`
(both ends included). **By hand:** *Trigger*. As the form is, the newest hours that have landed and are not published;
with `from` and `to`, one run for that range. Running an hour again gives the same tables. Hours at the ends of the
range that never landed are left out; if there is nothing else, nothing is run, and the run's note says so.

**Files that land in an hour that was ingested** wait to be run again: by *Trigger*, or, with `run_again = true` in
`[late_files]` of `config/pipeline.toml`, by runs that the next scheduled one triggers.

**A critical check fails:** the fault is in the data, not in the run. The click hours that it touches are held at their
last good version, the others are published, and later runs go on. The run's note says what is held and why, and for
each new hold a run of `held_hours` asks a person what to do. Fixed and run again, an hour is published by itself.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param, PokeReturnValue, TriggerRule, chain, task

from dags.tasks.defaults import HOUR_ON_LAKE, TASK_DEFAULTS, log_hours_form
from dags.tasks.held import questions
from dags.tasks.launch import job_settings, log, log_lines
from dags.tasks.log_hours import CHOOSING_TASK, chosen, landed, late_runs
from dags.tasks.trigger import ask_about_hours, trigger_each
from include.settings import Settings
from include.sources import load_sources
from plugins.hourly_partitions import HourlyPartitions

SETTINGS = Settings.from_environment()
SOURCES = ["all", *load_sources(SETTINGS)]


with DAG(
    dag_id="clicks_hourly",
    doc_md=__doc__,
    description="Click logs to validated, published counts per URL and per country",
    # The run at the hour's end is the run of that hour.
    schedule=HourlyPartitions("0 * * * *", timezone="UTC", run_offset=-1, key_format="%Y-%m-%dT%H"),
    start_date=SETTINGS.schedule_start,
    catchup=False,
    max_active_runs=4,
    tags=["clickmill"],
    default_args=TASK_DEFAULTS,
    params={
        "source": Param("all", enum=SOURCES, description="A source, or all: every source with scheduled = true."),
        **log_hours_form(
            "First log hour, on the full hour. Empty: the partition, or the newest not yet published. Leave both empty "
            "in a backfill, which has a range of its own: each of its runs would work on all of these hours.",
            "The log hour after the last one; goes with from.",
            default=None,
            type=["null", "string"],
        ),
    },
) as dag:

    @task.sensor(task_id=CHOOSING_TASK, mode="reschedule", poke_interval=60, timeout=timedelta(days=2).total_seconds())
    def wait_for_landing(params: Any = None, dag_run: Any = None) -> PokeReturnValue:
        """Choose the log hours, and wait until they are closed, without holding a worker slot."""
        log_hours = landed(params, dag_run)
        return PokeReturnValue(is_done=log_hours is not None, xcom_value=log_hours)

    @task.pyspark(conn_id="spark_default", **HOUR_ON_LAKE)
    def ingest_clicks(params: Any = None, dag_run: Any = None, ti: Any = None, spark: Any = None) -> None:
        """Ingest the log hours; one that never landed is accounted for as empty."""
        from spark_jobs.ingest import job

        with job_settings(spark) as settings:
            log_lines(job.ingest(spark, settings, chosen(params, dag_run, ti), allow_missing=True), settings)

    @task.pyspark(conn_id="spark_default", **HOUR_ON_LAKE)
    def aggregate_clicks(params: Any = None, dag_run: Any = None, ti: Any = None, spark: Any = None) -> None:
        """Count the click hours that the log hours touch."""
        from spark_jobs.grouping.load import aggregate_measured

        with job_settings(spark) as settings:
            log_lines(aggregate_measured(spark, settings, chosen(params, dag_run, ti)), settings)

    @task.pyspark(conn_id="spark_default", **HOUR_ON_LAKE)
    def validate_clicks(params: Any = None, dag_run: Any = None, ti: Any = None, spark: Any = None) -> None:
        """Check them. A critical check that fails is a finding, by which hours are held, and no failure of the task."""
        from spark_jobs.quality import job

        with job_settings(spark) as settings:
            validation = job.validate(spark, settings, chosen(params, dag_run, ti))
            for level, line in job.described(validation):
                log.log(level, line)
            log_lines((), settings)

    @task.pyspark(conn_id="spark_default", **HOUR_ON_LAKE)
    def publish_clicks(params: Any = None, dag_run: Any = None, ti: Any = None, spark: Any = None) -> list[Any]:
        """Publish what is not held; the result are the runs of held_hours to trigger."""
        from spark_jobs.publish import job

        with job_settings(spark) as settings:
            published = job.publish(spark, settings, chosen(params, dag_run, ti))
            log_lines(published.lines, settings)
            return questions(published.held)

    published = publish_clicks()
    chain(
        wait_for_landing(),
        ingest_clicks(),
        aggregate_clicks(),
        validate_clicks(),
        published,
        ask_about_hours("ask_about_held", published),
    )
    if SETTINGS.pipeline.late_files.run_again:

        @task(trigger_rule=TriggerRule.ALL_DONE)
        def find_late_files(params: Any = None, dag_run: Any = None) -> list[dict[str, Any]]:
            """The runs for log hours that were ingested and in which files have landed since."""
            return late_runs(params, dag_run)

        late = find_late_files()
        published >> late
        trigger_each("run_late_files", "clicks_hourly", late)

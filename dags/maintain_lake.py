"""# The lake, tidied every night

**Arrives:** the tables of the lake. **Leaves:** them, without what is older than `[retention]` in
`config/pipeline.toml` says, and fewer files.

What a held hour, an open backfill or an unfinished ingest needs stays, and the log gives the reason. Then files go that
were replaced more than a week ago, and as old ones that a killed job has left; those of the published hourly tables
stay, so that a backfill can be undone. It waits for jobs that are running.

**Backfill:** none. **By hand:** *Trigger*; with `dry_run` its log says what would be removed, and nothing is.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, task

from dags.tasks.defaults import DAG_DEFAULTS, ON_LAKE, switch
from dags.tasks.launch import final_errors, log_lines
from include.settings import Settings

with DAG(
    dag_id="maintain_lake",
    doc_md=__doc__,
    description="What is past its days, and files that nobody needs, removed every night",
    schedule="17 3 * * *",
    params={"dry_run": switch("Only say what would be removed.")},
    **DAG_DEFAULTS,
) as dag:

    @task(**ON_LAKE)  # type: ignore[untyped-decorator]
    def maintain_lake(params: Any = None) -> None:
        """Remove from the lake's tables what nobody needs, or say what that is."""
        from spark_jobs.retention import job

        with final_errors():
            settings = Settings.from_environment()
            log_lines(job.maintain(settings, dry_run=params["dry_run"]), settings)

    maintain_lake()

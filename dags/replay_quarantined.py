"""# Quarantined lines, parsed again

**Arrives:** log hours with quarantined lines, of a source whose mapping or limit was fixed.
**Leaves:** in `clicks` what is a click by now, with the replay's id; its click hours counted, checked and published.

*Trigger* it with `dry_run` on: its log, and the page of the hour under **Data quality**, say what would be recovered.
Then without. Who triggered it and why is on record in `journal`, before it is done and after.

**rule:** an SQL expression over `raw`, `source` and `reason` that repairs a line, or nothing.
**withdraw:** the id of a replay, as its log and the table `journal` have it: its lines are quarantined again, and their
click hours counted so; of the other fields only `dry_run` and `reason` are looked at.
**Killed:** clear the task.

**Backfill:** this is one, of quarantined lines.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, Param, task

from dags.tasks.defaults import DAG_DEFAULTS, ON_LAKE, log_hours_form, optional, reason, switch
from dags.tasks.launch import NAME_BY_ANNOUNCEMENT, announce, job_settings, log_lines, signer
from include.job_arguments import JobArguments
from include.settings import Settings
from include.sources import load_sources
from include.tables import QUARANTINE_REASONS

SOURCES = list(load_sources(Settings.from_environment()))


with DAG(
    dag_id="replay_quarantined",
    doc_md=__doc__,
    description="Quarantined lines parsed again, after a mapping or a limit was fixed",
    schedule=None,
    is_paused_upon_creation=False,
    params={
        "source": Param(SOURCES[0], enum=SOURCES, description="One source."),
        **log_hours_form("First log hour, on the full hour.", "The log hour after the last one."),
        "reasons": optional(
            "array",
            "Only lines of these quarantine reasons; none: all.",
            items={"type": "string", "enum": list(QUARANTINE_REASONS)},
            examples=list(QUARANTINE_REASONS),
        ),
        "rule": optional("string", "An SQL expression that repairs a line; empty: none."),
        "withdraw": optional("string", "The id of a replay whose lines are to be quarantined again; empty: none."),
        "dry_run": switch("Only say what would change.", is_on=True),
        "reason": reason(),
    },
    **DAG_DEFAULTS,
) as dag:

    @task.pyspark(conn_id="spark_default", map_index_template=NAME_BY_ANNOUNCEMENT, **ON_LAKE)
    def replay_quarantined(params: Any = None, dag_run: Any = None, spark: Any = None) -> None:
        """Parse quarantined lines again, or withdraw a replay; or say what that would change."""
        from spark_jobs.replay import job

        with job_settings(spark) as settings:
            by, because, is_dry_run = signer(dag_run), params["reason"], params["dry_run"]
            if withdrawn := (params["withdraw"] or "").strip():
                lines = job.withdraw(spark, settings, withdrawn, by=by, because=because, is_dry_run=is_dry_run)
            else:
                log_hours = JobArguments.of(params["source"], params["from"], params["to"]).log_hours
                reasons = tuple(sorted(set(params["reasons"] or ())))
                request = job.Request(params["source"], log_hours, reasons, (params["rule"] or "").strip() or None)
                lines = job.replay(spark, settings, request, by=by, because=because, is_dry_run=is_dry_run)
            announce("; ".join(line.strip() for line in lines))
            log_lines(lines, settings)

    replay_quarantined()

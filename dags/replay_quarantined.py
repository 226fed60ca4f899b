"""# Quarantined lines, parsed again

**Arrives:** log hours with quarantined lines, of a source whose mapping or limit was fixed.
**Leaves:** in `clicks` what is a click by now, with the replay's id; its click hours counted, checked and published.

*Trigger* it with `dry_run` on: its log, and the page of the hour under **Data quality**, say what would be recovered.
Then without. Who triggered it and why is on record in `audit`, before it is done and after.

**rule:** an SQL expression over `raw`, `source` and `reason` that repairs a line, or nothing.
**withdraw:** the id of a replay, as its log and the table `replays` have it: its lines are quarantined again, and their
click hours counted so; of the other fields only `dry_run` and `reason` are looked at.
**Killed:** clear the task.

**Backfill:** this is one, of quarantined lines.
"""

from __future__ import annotations

from typing import Any

from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator
from airflow.sdk import DAG, Param

from dags.tasks import acts
from dags.tasks.defaults import DAG_DEFAULTS, ON_LAKE, log_hours_form, reason
from include.settings import Settings
from include.sources import load_sources
from include.tables import QUARANTINE_REASONS

SOURCES = list(load_sources(Settings.from_environment()))


def replay(params: dict[str, Any], dag_run: Any, spark: Any = None) -> None:
    """The task replay_quarantined."""
    acts.replay(params, dag_run, spark)


with DAG(
    dag_id="replay_quarantined",
    doc_md=__doc__,
    description="Quarantined lines parsed again, after a mapping or a limit was fixed",
    schedule=None,
    is_paused_upon_creation=False,
    params={
        "source": Param(SOURCES[0], enum=SOURCES, description="One source."),
        **log_hours_form("First log hour, on the full hour.", "The log hour after the last one."),
        "reasons": Param(
            [],
            type="array",
            items={"type": "string", "enum": list(QUARANTINE_REASONS)},
            examples=list(QUARANTINE_REASONS),
            description="Only lines of these quarantine reasons; none: all.",
        ),
        "rule": Param("", type="string", description="An SQL expression that repairs a line; empty: none."),
        "withdraw": Param(
            None,
            type=["null", "string"],
            description="The id of a replay whose lines are to be quarantined again; empty: none.",
        ),
        "dry_run": Param(True, type="boolean", description="Only say what would change."),
        "reason": reason(),
    },
    **DAG_DEFAULTS,
) as dag:
    PySparkOperator(task_id="replay_quarantined", python_callable=replay, conn_id="spark_default", **ON_LAKE)

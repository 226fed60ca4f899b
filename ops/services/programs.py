"""The programs that supervisord keeps running, by the names that it knows them by."""

from __future__ import annotations

from collections.abc import Mapping

SPARK = "spark-connect"


MIGRATION = "airflow-db-migrate"


AIRFLOW = ("airflow-api-server", "airflow-scheduler", "airflow-dag-processor")


TRIGGERER = "airflow-triggerer"


BROKER = "kafka-broker"  # see ops/broker.py


RECEIVER = "click-receiver"  # see ops/receive.py


METRICS = "metrics"  # see ops/metrics.py


def programs_of(environment: Mapping[str, str]) -> list[str]:
    """Return the services that are always there, and the triggerer if it is wanted."""
    triggerer = environment.get("CLICKMILL_TRIGGERER", "0").lower() in ("1", "true", "yes")
    return [SPARK, *AIRFLOW, *((TRIGGERER,) if triggerer else ())]

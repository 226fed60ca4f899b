"""What holds for every DAG, its tasks and its form, unless one of them says otherwise."""

from __future__ import annotations

from datetime import timedelta

#: A form's date and time: Airflow refuses another before it makes a run of it.
FULL_HOUR = r"T\d{2}:00(:00(\.0+)?)?(Z|[+-]\d{2}:\d{2})?$"

TASK_DEFAULTS = {
    "owner": "clickmill",
    "retries": 3,
    "retry_delay": timedelta(seconds=30),
    "retry_exponential_backoff": True,
    "max_retry_delay": timedelta(minutes=10),
}

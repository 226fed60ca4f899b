"""What holds for the tasks of every DAG unless one of them says otherwise."""

from __future__ import annotations

from datetime import timedelta

TASK_DEFAULTS = {
    "owner": "clickmill",
    "retries": 3,
    "retry_delay": timedelta(seconds=30),
    "retry_exponential_backoff": True,
    "max_retry_delay": timedelta(minutes=10),
}

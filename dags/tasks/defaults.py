"""What holds for every DAG, its tasks and its form, unless one of them says otherwise."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

#: A form's date and time: Airflow refuses another before it makes a run of it.
_FULL_HOUR = r"T\d{2}:00(:00(\.0+)?)?(Z|[+-]\d{2}:\d{2})?$"

TASK_DEFAULTS = {
    "owner": "clickmill",
    "retries": 3,
    "retry_delay": timedelta(seconds=30),
    "retry_exponential_backoff": True,
    "max_retry_delay": timedelta(minutes=10),
}

#: Of a DAG of which one run goes at a time, and Airflow makes none for the past.
DAG_DEFAULTS: dict[str, Any] = {
    "start_date": datetime(2015, 1, 1, tzinfo=UTC),
    "catchup": False,
    "max_active_runs": 1,
    "tags": ["clickmill"],
    "default_args": TASK_DEFAULTS,
}


def log_hours_form(first: str, end: str, **of_both: Any) -> dict[str, Any]:
    """The fields ``from`` and ``to`` of a form, so described; ``of_both`` takes the place of what is here."""
    from airflow.sdk import Param

    hour = {"type": "string", "format": "date-time", "pattern": _FULL_HOUR, **of_both}
    return {
        "from": Param(title="from (log hour, UTC)", description=first, **hour),
        "to": Param(title="to (log hour, UTC, not included)", description=end, **hour),
    }


def optional(kind: str, description: str, default: Any = None, **schema: Any) -> Any:
    """A field of a form that may be empty, of this type of JSON.

    Its value is null then: in Airflow's form a field is required if its type has no null, and "" is none.
    """
    from airflow.sdk import Param

    return Param(default, type=["null", kind], description=description, **schema)


def switch(description: str, *, is_on: bool = False, **schema: Any) -> Any:
    """A field that is on or off; a type would make it a required one, with a red asterisk."""
    from airflow.sdk import Param

    return Param(is_on, enum=[False, True], description=description, **schema)


def reason() -> Any:
    """The field ``reason`` of a form whose act is put on record."""
    from airflow.sdk import Param

    return Param(type="string", minLength=1, description="Why; kept on record.")

"""What holds for every DAG, its tasks and its form, unless one of them says otherwise."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from include import lake_pool
from include.errors import SparkGoneError, in_one_line

#: A try has ended by then, or hangs: it is ended, gives up what it has locked, and Airflow tries again as after any
#: error. Waiting for a place in a pool does not count, waiting for a lock does. Of a task that looks, chooses or
#: triggers, which takes seconds:
LONGEST_LOOK = timedelta(hours=1)
#: Of a job, after what it may take: a chunk of a week, a month after an outage, the whole lake. A day is some thousand
#: million clicks (docs/performance.md).
LONGEST_JOB = timedelta(days=1)
#: A try that lost its Spark server has waited for the next one already.
_AFTER_SPARK = timedelta(seconds=1)


class Retries:
    """How a task is tried again, by its error: a RetryPolicy of Airflow's, which is not imported here."""

    def evaluate(self, exception: BaseException, try_number: int, max_tries: int, context: Any = None) -> Any:
        """Immediately if the Spark server was started again; else as the task says."""
        from airflow.sdk import RetryDecision

        line = in_one_line(exception)
        if isinstance(line, SparkGoneError):
            return RetryDecision.retry(_AFTER_SPARK, str(line))
        return RetryDecision.default()


def wait_for_spark(context: Any) -> None:
    """Before a task of Spark's: a server that is being started again is waited for, instead of failing the try."""
    if getattr(context["task"], "conn_id", None) == "spark_default":
        from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook

        connection = SparkConnectHook.get_connection("spark_default")
        if connection.conn_type == SparkConnectHook.conn_type:
            from spark_jobs.engine.lost_server import require_answer

            require_answer(SparkConnectHook("spark_default").get_connection_url())


TASK_DEFAULTS = {
    "owner": "clickmill",
    "retries": 3,
    "retry_delay": timedelta(seconds=30),
    "retry_exponential_backoff": True,
    "max_retry_delay": timedelta(minutes=10),
    "retry_policy": Retries(),
    # By its own weight only: see ON_LAKE.
    "weight_rule": "absolute",
    "pre_execute": wait_for_spark,
    "execution_timeout": LONGEST_LOOK,
}

#: Of a question, which takes as long as it takes; Airflow would end it unanswered after the time of TASK_DEFAULTS.
WAITS_FOR_A_PERSON: dict[str, Any] = {"execution_timeout": None}

#: Of a task that takes the lake's lock: it waits in the pool, not in a worker. What a person has asked for goes before
#: a backfill, and the present hour before both. One chunk works at a time, of whatever backfill.
ON_LAKE: dict[str, Any] = {"pool": lake_pool.NAME, "priority_weight": 5, "execution_timeout": LONGEST_JOB}
HOUR_ON_LAKE = ON_LAKE | {"priority_weight": 10}
CHUNK_ON_LAKE = ON_LAKE | {"priority_weight": 1, "max_active_tis_per_dag": 1}

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

    hour = {"type": "string", "format": "date-time", **of_both}
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

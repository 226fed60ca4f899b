"""# Visitors, addresses and URLs erased

**Arrives:** requests, one a line, in an Airflow variable: `{"visitor": "…"}`, `{"address": "…"}` or
`{"url_prefix": "…"}`. **Leaves:** nothing of them in landing files, tables, exports and pages; a certificate in
`reports/erasures/`, which names nobody.

Put the requests into the variable (*Admin*, *Variables*; Airflow encrypts it), then *Trigger*. `plan_erasure` finds
how much there is and changes nothing; `ask` shows it, and what could not be undone any more: *Required actions*.

- **Erase:** all of it goes, for good. When all is erased the variable is removed.
- **Cancel:** nothing is erased, and the variable stays. As long as nobody answers, nothing is erased either.

If more is found by then than was shown, the run's note says so. Who answered, who triggered it and why is on record in
`journal`, before and after. **Killed:** clear `erase_visitor`.

**Backfill:** none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import DAG, Variable, task

from dags.tasks.defaults import DAG_DEFAULTS, ON_LAKE, WAITS_FOR_A_PERSON, optional, reason
from dags.tasks.launch import job_settings, log_lines, signer
from dags.tasks.notes import leave_note, skipped
from include.errors import UsageError

#: Airflow's variable with the requests, unless the form names another.
REQUESTS = "erasure_secret"
ERASE, CANCEL = "Erase", "Cancel"


def variable_of(params: Mapping[str, Any]) -> str:
    """The name of the variable with the requests."""
    return str(params["variable"] or REQUESTS).strip()


def requests_of(params: Mapping[str, Any]) -> Any:
    """What is asked to be erased, by the variable that the form names.

    Raises:
        UsageError: if Airflow would show what the variable holds, there is none, or a line of it is wrong.
    """
    from spark_jobs.erasure.requests import Requests

    name = variable_of(params)
    if "secret" not in name.lower():
        raise UsageError(f"the variable {name}: its name must have secret in it, so that Airflow hides what it holds")
    text = Variable.get(name, default=None)
    if text is None:
        raise UsageError(f"there is no variable {name}: expected one with the requests, one a line")
    return Requests.of_lines(text.splitlines(), f"the variable {name}")


with DAG(
    dag_id="erase_visitor",
    doc_md=__doc__,
    description="Visitors, client addresses or URLs erased from everything that is kept",
    schedule=None,
    is_paused_upon_creation=False,
    params={
        # Whose name has "secret" in it, Airflow masks in logs and pages.
        "variable": optional(
            "string",
            "The variable with the requests, one a line; its name has secret in it.",
            default=REQUESTS,
        ),
        "reason": reason(),
    },
    # An open question keeps no other erasure waiting.
    **DAG_DEFAULTS | {"max_active_runs": 8},
) as dag:

    @task.pyspark(conn_id="spark_default", **ON_LAKE)
    def plan_erasure(params: Any = None, dag_run: Any = None, spark: Any = None) -> dict[str, Any]:
        """What an erasure of what the variable asks for would do; it names nobody, and is shown to whoever is asked."""
        from spark_jobs.erasure.erase import plan

        with job_settings(spark) as settings:
            planned = plan(spark, settings, requests_of(params), signer(dag_run), params["reason"])
            log_lines(planned.lines)
        return asdict(planned)

    ask = HITLOperator(
        task_id="ask",
        subject="An erasure waits for your answer: it cannot be undone",
        # As code; it names nobody.
        body="""\
{% for text in ti.xcom_pull(task_ids='plan_erasure')['lines'] %}
    {{ text }}
{% endfor %}

Asked for by {{ dag_run.triggering_user_name }}. Nothing is erased before you answer.
""",
        options=[ERASE, CANCEL],
        **WAITS_FOR_A_PERSON,
    )

    @task.pyspark(conn_id="spark_default", **ON_LAKE)
    def erase_visitor(answer: Any, params: Any = None, dag_run: Any = None, ti: Any = None, spark: Any = None) -> None:
        """Erase what was planned, if a person has said so; then the variable is removed.

        Raises:
            AirflowSkipException: if it was cancelled.
            AirflowFailException: if the variable is gone, or asks for something else by now.
        """
        from spark_jobs.erasure.erase import Plan, erase

        answered = str(answer["responded_by_user"]["name"])
        if answer["chosen_options"] != [ERASE]:
            raise skipped(f"nothing is erased: cancelled by {answered}")
        with job_settings(spark) as settings:
            asked = signer(dag_run)
            by = answered if answered == asked else f"{answered}, asked by {asked}"
            shown = Plan(**ti.xcom_pull(task_ids="plan_erasure"))
            lines = erase(spark, settings, requests_of(params), by, params["reason"], shown=shown)
            log_lines(lines, settings)
        leave_note(" ".join(map(str.strip, lines)))
        Variable.delete(variable_of(params))

    plan_erasure() >> ask
    erase_visitor(ask.output)

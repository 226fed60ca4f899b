"""# Held click hours

**Arrives:** a click hour that `clicks_hourly` holds because a critical check failed, and why.
**Leaves:** a person's decision on it, done and on record in `journal`.

Each run is one hold. `ask` waits for an answer, as long as it takes and without holding a worker: *Required actions*
in Airflow's UI. `decide_held` then does it:

- **Publish anyway:** the counts that failed are published, and so are those that come later.
- **Drop:** the hour stays as it is published, until it is backfilled or a person releases it.
- **Keep held:** nothing is done. To decide later, clear `ask`, or trigger this DAG by hand with the hour.

An answer is for what was found, and stands while the checks find the same or better. Something worse is asked by
another run, and this question ends by itself. If it was found while somebody answered, `decide_held` fails, says in its
name why, and another run asks again.

To lift a hold by fixing: land the log hour again, and run it again in `clicks_hourly` (*Clear*, or *Backfill*). When
the checks pass it is published, and this question ends by itself, within some minutes if it is new.

**Backfill:** none; there is a run for each hold.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, Param, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from dags.tasks.defaults import DAG_DEFAULTS, ON_LAKE
from dags.tasks.held import ANSWERS, KEEP, SHOWN, ask_about_held, question
from dags.tasks.launch import NAME_BY_ANNOUNCEMENT, announce, job_settings, log_lines
from dags.tasks.notifications import held_notifiers
from dags.tasks.trigger import ask_again, asked_again
from include.errors import NotHeldError
from include.holds import OtherFindingsError, findings_of
from include.hours import Hour

#: More open questions would be more than a person answers, and the scheduler looks at each every time.
MOST_OPEN_QUESTIONS = 128


with DAG(
    dag_id="held_hours",
    doc_md=__doc__,
    description="A person decides what becomes of a click hour that failed a critical check",
    schedule=None,
    is_paused_upon_creation=False,
    params={
        "hour": Param(
            type="string", title="click hour, UTC", description="The held click hour, such as 2026-03-01T05."
        ),
    },
    **DAG_DEFAULTS | {"max_active_runs": MOST_OPEN_QUESTIONS},
) as dag:
    ask = ask_about_held(
        map_index_template=NAME_BY_ANNOUNCEMENT,
        options=[*ANSWERS, KEEP],
        params={
            "reason": Param(
                "", type="string", title="Reason", description="Why; kept on record. Needed, also to keep it held."
            )
        },
        notifiers=held_notifiers(),
    )

    @task.pyspark(conn_id="spark_default", map_index_template=NAME_BY_ANNOUNCEMENT, **ON_LAKE)
    def decide_held(answer: Any, shown: str, params: Any = None, ti: Any = None, spark: Any = None) -> None:
        """Do what a person answered about what was found in the click hour; who it was goes on record.

        ``shown`` are the findings that the person was shown. If something worse is found by now, nothing is done; that
        is said in the task's name, and word is left of the run that asks again.

        Raises:
            AirflowSkipException: if the hour is to stay held, or is not held any more.
            AirflowFailException: if no reason is given, or the answer is not carried out.
        """
        from spark_jobs.publish.decide_held import Decision, decide

        (choice,), by = answer["chosen_options"], answer["responded_by_user"]["name"]
        if choice not in ANSWERS:
            raise AirflowSkipException(announce(f"{params['hour']} stays held"))
        because = (answer["params_input"] or {}).get("reason") or ""
        try:
            with job_settings(spark) as settings:
                decision = Decision(Hour.parse(params["hour"]), ANSWERS[choice], by, because, findings_of(shown))
                lines = decide(spark, settings, decision)
        except NotHeldError as error:
            raise AirflowSkipException(announce(f"nothing to decide: {error}")) from error
        except OtherFindingsError as error:
            raise asked_again(ti, question(error.state, f"{by}: {choice}: {error}"), error) from error
        except AirflowFailException as error:
            announce(f"not carried out: {error}")
            raise
        announce(lines[0])
        log_lines(lines, settings)

    decide_held(ask.output, ask.output[SHOWN]) >> ask_again("held_hours", after="decide_held")

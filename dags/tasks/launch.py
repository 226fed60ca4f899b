"""How a DAG's task runs a job: in its session, its words into the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from dags.tasks.notes import leave_note
from include.errors import (
    FinalError,
    NotHeldError,
    QualityError,
    StreamRunsAlreadyError,
    UsageError,
    in_one_line,
)
from include.holds import ClickHourState, OtherFindingsError, approval_run_id, findings_of
from include.job_arguments import JobArguments
from include.log_hours import Hour
from include.settings import Settings
from include.sources import choose_sources, load_sources, stream_of

log = logging.getLogger("clickmill")

#: The key under which a task that did not carry out an answer leaves word of the run that asks again.
AGAIN = "again"
#: What can be answered when a click hour is held, and the decision that it is; none for the last.
ANSWERS = {"Publish anyway": "publish", "Drop": "drop"}
KEEP = "Keep held"
#: Of the newest days so many are released, unless the form says.
RELEASED_DAYS = 7
#: Airflow keeps so many characters of a task's name in a run.
_MOST_CHARACTERS = 250


def ingest(arguments: JobArguments, spark: Any) -> None:
    """Ingest log hours; one that never landed is accounted for as empty.

    Raises:
        AirflowFailException: for what trying again cannot fix, such as wrong arguments.
    """
    from spark_jobs.ingest import job

    settings = configured(spark)
    with final_errors():
        lines = job.ingest(spark, settings, arguments, allow_missing=True)
    log_lines(lines, settings)


def aggregate(arguments: JobArguments, spark: Any) -> None:
    """Count the click hours that log hours touch.

    Raises:
        AirflowFailException: for what trying again cannot fix, such as wrong arguments.
    """
    from spark_jobs.aggregate import job

    settings = configured(spark)
    with final_errors():
        lines = job.aggregate(spark, settings, arguments)
    log_lines(lines, settings)


def streamed_sources(name: str) -> list[str]:
    """The named streamed source, or with ``all`` every scheduled one.

    Raises:
        AirflowFailException: if the named source is not there, or not streamed.
    """
    settings = Settings.from_environment()
    with final_errors():
        if name == "all":
            sources = load_sources(settings).values()
            return [source.name for source in sources if source.stream is not None and source.scheduled]
        (source,) = choose_sources(settings, name)
        stream_of(source)
        return [source.name]


def stream(name: str, spark: Any) -> None:
    """Stream what a source has now into the lake, or see to it that its stream runs by itself.

    Raises:
        AirflowSkipException: if it is to catch up, and its stream runs by itself.
        AirflowFailException: if the configuration is wrong.
    """
    from airflow.sdk.exceptions import AirflowSkipException

    from spark_jobs.stream import job
    from spark_jobs.stream.supervision import supervise

    settings = Settings.from_environment()
    try:
        with final_errors():
            (source,) = choose_sources(settings, name)
            if stream_of(source).run == "supervised":
                log.info(supervise(settings, name))
            else:
                job.stream(spark, configured(spark), [source], available_now=True)
    except StreamRunsAlreadyError as error:
        raise AirflowSkipException(str(error)) from error


def maintain(*, dry_run: bool) -> None:
    """Remove from the lake's tables what nobody needs, or say what that is."""
    from spark_jobs.retention import job

    settings = Settings.from_environment()
    with final_errors():
        lines = job.maintain(settings, dry_run=dry_run)
    log_lines(lines, settings)


def release(days: int, spark: Any) -> None:
    """Release the newest days, so many of them, that late clicks have had time to come to.

    Raises:
        AirflowSkipException: if no noise is configured.
    """
    from airflow.sdk.exceptions import AirflowSkipException

    from spark_jobs.publish import release_counts

    settings = Settings.from_environment()
    with final_errors():
        noise = settings.pipeline.publication.noise
        if noise is None:
            raise AirflowSkipException(said(f"{settings.pipeline_file} has no [publication.noise]"))
        configured(spark)
        end = datetime.now(UTC).date() - timedelta(days=noise.wait_days)
        lines = release_counts.release(spark, settings, end - timedelta(days=days), end)
    log_lines(lines, settings)


def validate(arguments: JobArguments, spark: Any) -> None:
    """Run validate_clicks. That a critical check failed is a finding, by which ``publish`` holds hours, and no failure.

    Raises:
        AirflowFailException: if the arguments are wrong.
    """
    from spark_jobs.quality import job

    settings = configured(spark)
    with final_errors():
        validation = job.validate(spark, settings, arguments)
    for level, line in job.described(validation):
        log.log(level, line)
    log.info("report: %s", settings.report.as_uri())


def publish(arguments: JobArguments, spark: Any) -> list[dict[str, Any]]:
    """Run publish_clicks; returns, for each click hour that is held, the run of held_hours that asks about it.

    Raises:
        AirflowFailException: if a click hour was never validated.
    """
    from spark_jobs.publish import job

    settings = configured(spark)
    with final_errors():
        published = job.publish(spark, settings, arguments)
    log_lines(published.lines, settings)
    # What is being counted or checked again is asked about by the run that does so.
    held = [state for state in published.held if state.waits_for is None and state.staged_by is None]
    if held:
        leave_note("; ".join(f"{state.hour} is held: {state.reasons}" for state in held))
    return [question(state) for state in held]


def question(state: ClickHourState, note: str = "") -> dict[str, Any]:
    """The run of held_hours that asks about a hold, however often it is counted; another, if something worse is found.

    Airflow keeps the text of a question until it is answered, so the same run cannot show what is worse.
    """
    return {
        "trigger_run_id": approval_run_id(state.hour, state.asked),
        # The reasons for whoever has started the run that asks: the question itself looks at what is found then.
        "conf": {"hour": str(state.hour), "reasons": [failure.said for failure in state.failures]},
        **({"note": note} if note else {}),
    }


def decide(
    params: Mapping[str, Any], answer: Mapping[str, Any], spark: Any, ti: Any = None, shown: str | None = None
) -> None:
    """Do what a person answered about what was found in a click hour; who it was goes on record.

    ``shown`` are the findings that the person was shown. If something worse is found by now, nothing is done; that is
    said in the task's name, and ``ti`` is left word of the run that asks again.

    Raises:
        AirflowSkipException: if it is to stay held, or is not held any more.
        AirflowFailException: if no reason is given, or the answer is not carried out.
    """
    from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

    from spark_jobs.publish import decide_held

    hour, (chosen,) = params["hour"], answer["chosen_options"]
    if chosen not in ANSWERS:
        raise AirflowSkipException(said(f"{hour} stays held"))
    settings = configured(spark)
    by, because = answer["responded_by_user"]["name"], (answer["params_input"] or {}).get("reason") or ""
    try:
        with final_errors():
            decision = decide_held.Decision(Hour.parse(hour), ANSWERS[chosen], by, because, findings_of(shown))
            lines = decide_held.decide(spark, settings, decision)
    except NotHeldError as error:
        raise AirflowSkipException(said(f"nothing to decide: {error}")) from error
    except OtherFindingsError as error:
        raise asked_again(ti, question(error.state, f"{by}: {chosen}: {error}"), error) from error
    except AirflowFailException as error:
        said(f"not carried out: {error}")
        raise
    said(lines[0])
    log_lines(lines, settings)


def asked_again(ti: Any, run: Mapping[str, Any], error: Exception) -> Exception:
    """The failure of a task whose answer is not carried out; it leaves word of the run that asks again."""
    from airflow.sdk.exceptions import AirflowFailException

    if ti is not None:
        ti.xcom_push(key=AGAIN, value=run)
    return AirflowFailException(said(f"not carried out, and asked again: {error}"))


def configured(spark: Any) -> Settings:
    """The settings, once the session is as jobs need it."""
    from spark_jobs.engine.session import configure

    configure(spark)
    return Settings.from_environment()


def log_lines(lines: list[str], settings: Settings) -> None:
    """Say what a job did, and where the report is."""
    for line in lines:
        log.info(line)
    log.info("report: %s", settings.report.as_uri())


@contextmanager
def final_errors() -> Iterator[None]:
    """Let Airflow not try again what trying again cannot fix, and say in one line what a person can act on."""
    from airflow.sdk.exceptions import AirflowFailException

    try:
        yield
    except (UsageError, QualityError, FinalError) as error:
        raise AirflowFailException(said(str(error))) from error
    except Exception as error:
        line = in_one_line(error)
        if line is None or line is error:
            raise
        raise line from error


def said(text: str) -> str:
    """The text, which becomes the run's note, and the name of a task that names itself after what was said."""
    leave_note(text)
    with suppress(Exception):
        from airflow.sdk import get_current_context

        get_current_context()["said"] = text[:_MOST_CHARACTERS]  # type: ignore[typeddict-unknown-key]
    return text


#: The name of such a task.
NAME_BY_WHAT_WAS_SAID = "{{ said | default('') }}"

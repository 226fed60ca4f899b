"""Which log hours a run of clicks_hourly works on: those of its form, its partition, or what is not published yet.

The task wait_for_landing chooses them, and leaves them as its result to the tasks after it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from dags.tasks.launch import final_errors
from dags.tasks.notes import skipped
from include.errors import UsageError
from include.hours import MOST_HOURS_A_RUN, MOST_HOURS_BETWEEN, Hour, HourRange, contiguous
from include.job_arguments import JobArguments, arguments_of_run
from include.landing import hour_of_folder, is_ready
from include.settings import Settings
from include.sources import Source, choose_sources
from include.storage import find

log = logging.getLogger("clickmill")

CHOOSING_TASK = "wait_for_landing"
#: Airflow's variable with the first hour that each of the last scheduled runs works on, by the run's partition. The
#: lake does not know which hours had a run: one that failed, or still waits for its logs, has left nothing there, as
#: one that had none; all runs after it would run it too.
FIRST_HOURS = "clickmill_first_hours"
_REMEMBERED = 48


def landed(params: Mapping[str, Any], dag_run: Any) -> dict[str, str] | None:
    """The log hours of the run, if all are closed, or read by their stream, or past their grace time; else None.

    Raises:
        AirflowSkipException: if the run was given no hours, and nothing waits to be published; or if nothing has
            landed for the hour of a backfill, nor before, or nor after it.
        AirflowFailException: if the form is wrong, or nothing has landed for its hours.
    """
    settings, now = Settings.from_environment(), datetime.now(UTC)
    with final_errors():
        arguments = _choose(settings, params, dag_run, now)
        sources = choose_sources(settings, arguments.source)
        if dag_run.run_type != "scheduled":
            hours = _with_something(settings, sources, arguments, dag_run.run_type == "backfill", now)
            arguments = replace(arguments, log_hours=hours)
    log.info("log hours of %s: %s", arguments.source, arguments.log_hours)
    waiting = [
        f"{source.name} {hour} ({reason})"
        for source in sources
        for hour in arguments.log_hours
        if (reason := _waits_for(settings, source, hour, now)) is not None
    ]
    log.info("waiting for _SUCCESS, or the stream, of: %s", ", ".join(waiting) or "nothing")
    return None if waiting else {"from": str(arguments.log_hours.start), "to": str(arguments.log_hours.end)}


def chosen(params: Mapping[str, Any], dag_run: Any, task_instance: Any) -> JobArguments:
    """What wait_for_landing chose; what the form or the partition says, if a person marked that task as done.

    Raises:
        AirflowFailException: if none of them says anything.
    """
    log_hours = task_instance.xcom_pull(task_ids=CHOOSING_TASK)
    if log_hours:
        return JobArguments.of(params["source"], log_hours["from"], log_hours["to"])
    with final_errors():
        return arguments_of_run(params, dag_run.partition_key)


def _choose(settings: Settings, params: Mapping[str, Any], dag_run: Any, now: datetime) -> JobArguments:
    partition, is_asked = dag_run.partition_key, params.get("from") or params.get("to")
    if is_asked or (partition and dag_run.run_type != "scheduled"):
        return arguments_of_run(params, partition)
    if partition:
        return JobArguments(params["source"], _since_the_last_run(Hour.parse(partition)))
    return JobArguments(params["source"], _newest_unpublished(settings, params["source"], now))


def _since_the_last_run(hour: Hour) -> HourRange:
    """The hour of a scheduled run, and those before it that had none, because nothing was running."""
    from airflow.sdk import Variable

    known: dict[str, str] = Variable.get(FIRST_HOURS, default={}, deserialize_json=True)
    log_hours = since_the_last_run(hour, known)
    if str(hour) not in known:
        newest = sorted({**known, str(hour): str(log_hours.start)}.items())[-_REMEMBERED:]
        Variable.set(FIRST_HOURS, dict(newest), serialize_json=True)
    if len(log_hours) > 1:
        log.info("no run was scheduled for the hours from %s on: they are run with this one", log_hours.start)
    return log_hours


def since_the_last_run(hour: Hour, known: Mapping[str, str]) -> HourRange:
    """What a scheduled run works on, given the first hours of the runs before: the same each time that it asks."""
    before = [Hour.parse(partition) for partition in known]
    if str(hour) in known:
        first = Hour.parse(known[str(hour)])
    elif before and max(before) < hour:
        first = max(max(before).plus(1), hour.plus(1 - MOST_HOURS_A_RUN))
    else:
        first = hour
    return HourRange(first, hour.plus(1))


def _newest_unpublished(settings: Settings, source_name: str, now: datetime) -> HourRange:
    # Imported here, as below: it imports more than a landing zone needs.
    from include.unpublished import unpublished_hours

    within = timedelta(hours=MOST_HOURS_A_RUN)
    hours = {
        hour
        for source in choose_sources(settings, source_name)
        for hour in unpublished_hours(settings, source, within, now)
    }
    if not hours:
        raise skipped(
            f"nothing to do: every hour that landed for {source_name} is published, or held and waits for a person"
            f"{_newest(settings, choose_sources(settings, source_name))}; to run hours again, give from and to"
        )
    newest = contiguous(hours, MOST_HOURS_BETWEEN)[-1]
    log.info("no hours were asked for: the newest of %d that are not published", len(hours))
    return HourRange(max(newest.start, newest.end.plus(-MOST_HOURS_A_RUN)), newest.end)


def _with_something(
    settings: Settings, sources: Sequence[Source], arguments: JobArguments, is_backfill: bool, now: datetime
) -> HourRange:
    """What is left of the hours that a person asked for, without those at both ends for which nothing will come.

    An hour between others without a log is accounted for as empty: that is worth a warning. One of Airflow's backfill
    lies between others too, which are runs of their own.

    Raises:
        AirflowSkipException: if there is none, and the run is one of many of a backfill.
        UsageError: if there is none.
    """
    there = {hour for source in sources for hour in _arrived(settings, source)}
    asked = list(arguments.log_hours)
    grace = timedelta(minutes=max(source.grace_minutes for source in sources))
    to_run = [hour for hour in asked if hour in there or now < hour.end + grace]
    if is_backfill and there and min(there) <= asked[0] and asked[-1] <= max(there):
        to_run = asked
    if to_run:
        return HourRange(to_run[0], to_run[-1].plus(1))
    names = arguments.source if arguments.source != "all" else ", ".join(source.name for source in sources)
    hours = str(asked[0]) if len(asked) == 1 else f"{asked[0]} to {asked[-1]}"
    reason = f"nothing has landed for {names} {hours}{_newest(settings, sources)}; nothing was run"
    if is_backfill:
        raise skipped(reason)
    raise UsageError(reason)


def _arrived(settings: Settings, source: Source) -> set[Hour]:
    """The log hours of which there is something: a landing partition, closed or not; lines in the lake."""
    from include.unpublished import ingested_hours, known_hours

    hours = set(known_hours(settings, source))
    if source.stream is None:
        hours |= {
            hour
            for path in find(settings.landing / source.name, "log_date=*/log_hour=*/*")
            if (hour := hour_of_folder(path.path.parent))
        }
    return hours | ingested_hours(settings, source)


def _newest(settings: Settings, sources: Sequence[Source]) -> str:
    there = [hour for source in sources for hour in _arrived(settings, source)]
    return f"; newest landed: {max(there)}" if there else "; nothing has landed at all"


def late_runs(params: Mapping[str, Any], dag_run: Any) -> list[dict[str, Any]]:
    """The runs to trigger for log hours that were ingested and in which files have landed since.

    Only by a scheduled run, once each: what cannot be run is tried again in an hour.
    """
    from include.unpublished import files_landed_since, unpublished_hours

    if dag_run.run_type != "scheduled":
        return []
    settings, now = Settings.from_environment(), datetime.now(UTC)
    runs = []
    for source in choose_sources(settings, params["source"]):
        since = files_landed_since(settings, source)
        within = timedelta(hours=settings.pipeline.late_files.watched_hours)
        waiting = unpublished_hours(settings, source, within, now, since=since) if since else []
        for hours in contiguous(since.keys() & set(waiting)):
            log.info("%s %s is run again: files have landed since it was ingested", source.name, hours)
            conf = {"source": source.name, "from": _as_asked(hours.start), "to": _as_asked(hours.end)}
            run_id = f"late_files_{dag_run.partition_key}_{source.name}_{hours.start}"
            runs.append({"trigger_run_id": run_id, "conf": conf})
    return runs


def _as_asked(hour: Hour) -> str:
    return f"{hour.start:%Y-%m-%dT%H:%M:%SZ}"


def _waits_for(settings: Settings, source: Source, hour: Hour, now: datetime) -> str | None:
    if source.stream is None:
        return None if is_ready(settings.landing, source, hour, now) else "not closed, and its grace time is not over"
    from include.streams.position import waits_for

    return waits_for(settings, source, hour, now)

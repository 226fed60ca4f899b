"""Hold, decide on and publish click hours: the rules of ``include.holds`` on a real lake."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from include.backfills import Backfill, read_backfills, staging_of
from include.holds import (
    COLUMNS,
    DROPPED,
    HELD,
    PUBLISHED,
    PUBLISHED_ANYWAY,
    RELEASED,
    ClickHourState,
    Event,
    Findings,
    answer_of,
    carried_out,
    click_hour_state,
    event_row,
    histories_of,
)
from include.hours import Hour, HourRange, LogHour, click_hour_of, contiguous
from include.job_arguments import JobArguments
from include.journal import CLICK_HOUR, Act, click_hours_filter, click_hours_since, read_events
from include.stored_rows import Filters, distinct_rows, of_click_hour
from include.tables import AGGREGATES, JOURNAL, QUALITY_RESULTS, Table
from spark_jobs.hours.touched_hours import log_hours_around, log_hours_touching
from spark_jobs.lake.journal import append_events
from spark_jobs.lake.lake import Lake

#: The events that say what the published tables have of a click hour.
_PUBLISHING = (PUBLISHED, PUBLISHED_ANYWAY, DROPPED)


def click_hour_states(
    lake: Lake, touching: Mapping[Hour, Mapping[LogHour, datetime]], by: Backfill | None = None
) -> dict[Hour, ClickHourState]:
    """The states of click hours, each given with the log hours that touch it and when those were ingested.

    Hold the lake's lock from here on until what depends on it is written. ``by`` is the backfill that publishes them:
    of the hours that it is of, it lifts what a person had dropped before.
    """
    if not touching:
        return {}
    results = results_of(lake, set(touching), set().union(*touching.values()))
    findings = Findings.of(results, read_events(lake.folder, click_hours_filter(touching)))
    counted_at = _counted_at(lake, touching)
    backfills = read_backfills(lake.settings.lake)
    staging = [backfill for backfill in backfills.values() if backfill.is_staging]

    def state(hour: Hour, log_hours: Mapping[LogHour, datetime]) -> ClickHourState:
        staged = staging_of(staging, log_hours)
        judged = click_hour_state(hour, log_hours, counted_at.get(hour), findings, staged.id if staged else None)
        is_lifted = by and judged.is_dropped and _is_of(by, judged, log_hours, backfills)
        return replace(judged, lifted_by=by.described) if by and is_lifted else judged

    return {hour: state(hour, log_hours) for hour, log_hours in sorted(touching.items())}


def _is_of(
    by: Backfill, state: ClickHourState, log_hours: Iterable[LogHour], backfills: Mapping[str, Backfill]
) -> bool:
    """Whether a backfill has again what was dropped before: the hour itself, or what another one had brought to it."""
    dropped = state.first_answer
    if dropped is None or dropped.at >= by.begun_at:
        return False
    of_source = [log_hour for log_hour in log_hours if log_hour.source == by.source]
    former = backfills.get(dropped.backfill_id or "")
    if former and former.source != by.source:
        return False
    brought = [log_hour for log_hour in of_source if former and former.has_log_hour(log_hour)]
    return bool(of_source) and (
        state.hour in by.log_hours or (bool(brought) and all(by.has_log_hour(log_hour) for log_hour in brought))
    )


def state_of_hour(lake: Lake, hour: Hour) -> ClickHourState | None:
    """The state of one click hour; None if no log hour has clicks of it."""
    log_hours = log_hours_touching(lake, hour)
    return click_hour_states(lake, {hour: log_hours})[hour] if log_hours else None


def states_between(lake: Lake, hours: HourRange) -> list[ClickHourState]:
    """The states of the click hours of a range of which anything became, in order."""
    of_these = [*click_hours_since(hours.start), ("first_hour", "<", str(hours.end))]
    known = {Hour.parse(row["subject"]) for row in lake.read_rows(JOURNAL, ["subject"], of_these)}
    touching = log_hours_around(lake, known).touching if known else {}
    return list(click_hour_states(lake, {hour: touching[hour] for hour in known & touching.keys()}).values())


def results_of(lake: Lake, click_hours: Collection[Hour], log_hours: Collection[LogHour]) -> list[dict[str, Any]]:
    """The rows of ``quality_results``, with ``COLUMNS``, of click hours and log hours."""
    # By hour too: of it Delta knows what is in which file, so that old files are not opened.
    hours = {*click_hours, *(log_hour.hour for log_hour in log_hours)}
    partitions = sorted(map(str, (*click_hours, *log_hours)))
    of_these = [("hour", "in", sorted(map(str, hours))), ("partition", "in", partitions)]
    return lake.read_rows(QUALITY_RESULTS, COLUMNS, of_these)


def arguments_for(log_hours: Iterable[LogHour]) -> list[JobArguments]:
    """These log hours as ranges without gaps, each of one source."""
    hours: dict[str, set[Hour]] = {}
    for log_hour in sorted(log_hours):
        hours.setdefault(log_hour.source, set()).add(log_hour.hour)
    return [
        JobArguments(source, log_range) for source, of_source in hours.items() for log_range in contiguous(of_source)
    ]


def hold_failing(lake: Lake, act: Act, states: Iterable[ClickHourState]) -> dict[Hour, ClickHourState]:
    """Say of those that are held, and were not before or for other reasons or numbers, that they are; return these."""
    return say_held(lake, act, [state for state in states if state.is_newly_held])


def say_held(
    lake: Lake, act: Act, states: Iterable[ClickHourState], note: str | None = None
) -> dict[Hour, ClickHourState]:
    """Say of these that they are held, with ``note`` which answer was not carried out; return them with that event."""
    now, held = datetime.now(UTC), list(states)
    rows = [event_row(act, now, state.hour, HELD, state.reasons, findings=state.failures, note=note) for state in held]
    return _with_events(lake, held, rows)


def lift(lake: Lake, act: Act, states: Iterable[ClickHourState]) -> dict[Hour, ClickHourState]:
    """Say of these where a backfill lifts what was dropped that they are judged again; return such with that event."""
    now, lifted = datetime.now(UTC), [state for state in states if state.lifted_by and not state.waits_for]
    rows = [event_row(act, now, state.hour, RELEASED, f"{state.lifted_by} has it again") for state in lifted]
    return _with_events(lake, [replace(state, lifted_by=None) for state in lifted], rows)


def _with_events(
    lake: Lake, states: Iterable[ClickHourState], rows: Sequence[Mapping[str, Any]]
) -> dict[Hour, ClickHourState]:
    """Append a row for each of these states; return them with that event."""
    append_events(lake, rows)
    return {
        state.hour: replace(state, history=(*state.history, Event.of(row)))
        for state, row in zip(states, rows, strict=True)
    }


def judged_rows(act: Act, states: Iterable[ClickHourState], because: str) -> list[dict[str, Any]]:
    """Rows of ``journal`` on what becomes of counts that are not held.

    They are published, ``because``; or what a person has decided is carried out, if it was decided on earlier counts.
    """
    now = datetime.now(UTC)
    rows = []
    for state in states:
        if state.is_decided and not state.is_on_record and not state.waits_for:
            rows.append(carried_out(act, now, state))
        elif state.is_good and not state.is_decided:
            rows.append(event_row(act, now, state.hour, PUBLISHED, because))
    return rows


def held_hours(lake: Lake, since: Hour) -> dict[Hour, tuple[str, ...]]:
    """The click hours from there on whose newest event is a hold, in order, each with the failed checks."""
    histories = histories_of(read_events(lake.folder, click_hours_since(since)))
    return {hour: history[-1].examples for hour, history in histories.items() if history[-1].outcome == HELD}


def decided_hours(lake: Lake, since: Hour | None = None) -> dict[Hour, Event]:
    """The click hours from there on, in order, on which a person's decision was the last one made, each with that."""
    of_these = click_hours_since(since) if since else [("kind", "=", CLICK_HOUR)]
    answers = {hour: answer_of(history) for hour, history in histories_of(read_events(lake.folder, of_these)).items()}
    return {hour: answer for hour, answer in answers.items() if answer}


def dropped_hours(lake: Lake) -> dict[Hour, Event]:
    """The click hours that stay as they were published because a person said so, in order, each with the decision."""
    return {hour: answer for hour, answer in decided_hours(lake).items() if answer.outcome == DROPPED}


def published_at(lake: Lake, click_hours: Collection[Hour]) -> dict[Hour, int]:
    """When each of these click hours was published last, in microseconds since 1970; without those that never were.

    Nor with those that a person has dropped since: what was published before is there, perhaps again. An answer that
    was not carried out yet has published nothing.
    """
    published: dict[Hour, int] = {}
    events = lake.read_rows(JOURNAL, JOURNAL.column_names, click_hours_filter(click_hours))
    for hour, history in histories_of(events).items():
        done = (event for event in reversed(history) if event.outcome in _PUBLISHING and not event.note)
        if (last := next(done, None)) and last.outcome != DROPPED:
            published[hour] = int(last.at.timestamp()) * 1_000_000 + last.at.microsecond
    return published


def _counted_at(lake: Lake, hours: Iterable[Hour]) -> dict[Hour, datetime]:
    """When each click hour was counted last, by any key; without those that have no clicks, or have lost a file.

    An aggregation that was killed may have counted by one key only: what it has counted nobody has validated. That a
    file is lost is what the suite ``layout`` finds, and holds the hour for.
    """
    hours = sorted(hours)
    newest: dict[Hour, datetime] = {}
    for table in AGGREGATES:
        try:
            rows = _count_times(lake, table, [("click_date", "in", sorted({hour.day for hour in hours}))])
        except FileNotFoundError:
            rows = [row for hour in hours for row in _count_times_if_there(lake, table, hour)]
        for row in rows:
            hour = click_hour_of(row)
            newest[hour] = max(row["counted_at"], newest.get(hour, row["counted_at"]))
    return newest


def _count_times_if_there(lake: Lake, table: Table, hour: Hour) -> list[dict[str, Any]]:
    with suppress(FileNotFoundError):
        return _count_times(lake, table, of_click_hour(hour))
    return []


def _count_times(lake: Lake, table: Table, of_these: Filters) -> list[dict[str, Any]]:
    """When the rows were counted, by click hour: however many keys an hour has, few times."""
    return list(distinct_rows(lake.open_table(table, ("click_date", "click_hour", "counted_at"), [of_these])))

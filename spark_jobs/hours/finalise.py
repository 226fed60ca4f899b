"""The accounting of a streamed source's log hours: finalised, from its micro-batches' counts, once an hour is over.

Until then the hour is open: its clicks are in the lake, and are neither counted nor checked. So what a run counts is
what it checks, though the stream goes on meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame

from include.hours import (
    MOST_HOURS_A_RUN,
    Hour,
    click_hours_predicate,
    hours_in_words,
    log_hour_of,
    log_hours_predicate,
)
from include.sources import Source, streamed_sources
from include.streams.position import position_of
from include.tables import CLICKS, INGEST_ACCOUNTING, QUARANTINED_CLICKS, STREAM_BATCHES
from spark_jobs.hours.account import HourAccount, listed_first, with_reopened
from spark_jobs.hours.stream_batches import account_of, in_order_of_time, write_as_few
from spark_jobs.hours.touched_hours import closed_click_hours
from spark_jobs.lake.data_files import DataFile, has_source, may_have_click_hours
from spark_jobs.lake.lake import Lake

#: Longer than between the time that a row says and its commit.
_MOMENT = timedelta(minutes=15)


def finalise(lake: Lake, source: Source, hours: Sequence[Hour]) -> dict[Hour, HourAccount]:
    """Account for these log hours of a streamed source, and again for finalised ones in which records have come since.

    And for earlier ones of which records have come, and that nobody has finalised in their time: of a producer that was
    offline, or of before the source's first run. The run of these hours is to count the clicks of the others too:
    ``reopened_log_hours`` names them. Hold the lake's lock.
    """
    with in_order_of_time(lake) as now:
        again = [hour for hour in _grown(lake, source, min(hours), now) if hour not in hours]
        batches = lake.rows_by_hour(STREAM_BATCHES, source.name, [*hours, *again])
    known = lake.row_by_hour(INGEST_ACCOUNTING, source.name, [*hours, *again])
    accounts = {hour: _account(batches.get(hour, []), known.get(hour)) for hour in [*hours, *again]}
    finalised = {hour: account for hour, account in accounts.items() if account is not None}
    if not finalised:
        return {}
    touched = {Hour.parse(hour) for account in finalised.values() for hour in account.click_hours}
    removed_at = {hour: account["clicks_removed_at"] for hour, account in known.items()}
    listed = {hour: account["landed_files"] or [] for hour, account in known.items()}
    closed = set(map(str, closed_click_hours(lake, touched, ())))
    for hour, account in finalised.items():
        if not removed_at.get(hour):  # else they say what is closed
            account.leave_out(closed)
    of_run = [hour for hour in hours if hour in finalised]
    names_again = (of_run or hours)[-1]
    if of_run:
        finalised[names_again].reopened_log_hours |= set(map(str, again))
    position = position_of(lake.settings, source)
    read = position.read_hours(list(finalised), now)
    landed = {hour: replace(position.landed(hour, batches.get(hour, [])), is_closed=hour in read) for hour in finalised}
    rows = [
        listed_first(finalised[hour].as_row(source.name, of_hour, now), listed.get(hour, []))
        | {"clicks_removed_at": removed_at.get(hour)}
        for hour, of_hour in landed.items()
    ]
    if not of_run:
        rows.append(with_reopened(known[names_again], again))
    lake.replace_rows(INGEST_ACCOUNTING, rows, log_hours_predicate(source.name, {*finalised, names_again}))
    for table in (CLICKS, QUARANTINED_CLICKS):
        lake.write_as_few_files(table, source.name, finalised)
    write_as_few(lake, source.name, now)
    return finalised


def final_clicks(lake: Lake, hours: Sequence[Hour]) -> DataFrame:
    """The rows of ``clicks`` of these click hours but for those of open log hours, as the table is now."""
    clicks, files = lake.read_with_files(CLICKS, may_have_click_hours(CLICKS, hours))
    is_open = open_log_hours(lake, streamed_sources(lake.settings), files)
    return less_open(clicks.where(click_hours_predicate(hours)), is_open)


def open_log_hours(lake: Lake, streamed: Iterable[str], files: Iterable[DataFile]) -> dict[str, set[Hour]]:
    """The log hours of each of these streamed sources that are not finalised, of these files of ``clicks``.

    As the files say them: of a micro-batch that was killed, or that runs, nothing else may.
    """
    hours_of_source: dict[str, set[Hour]] = {name: set() for name in streamed}
    for file in files:
        if file.partition["source"] in hours_of_source:
            hours_of_source[file.partition["source"]].add(file.log_hour)
    return {name: hours - _accounted_at(lake, name).keys() for name, hours in hours_of_source.items()}


def less_open(clicks: DataFrame, is_open: Mapping[str, Iterable[Hour]]) -> DataFrame:
    """The clicks but those of these open log hours."""
    for name, hours in is_open.items():
        clicks = clicks.where(f"NOT ({log_hours_predicate(name, hours)})")
    return clicks


def _streamed(lake: Lake, source: str) -> dict[Hour, dict[str, Any]]:
    """By log hour ``lines_sum`` and ``written_at_max`` of its micro-batches."""
    columns = ["log_date", "log_hour", "lines", "written_at"]
    rows = lake.read_table(STREAM_BATCHES, columns, [("source", "=", source)])
    by_hour = rows.group_by(["log_date", "log_hour"]).aggregate([("lines", "sum"), ("written_at", "max")])
    return {log_hour_of(row): row for row in by_hour.to_pylist()}


def _accounted_at(lake: Lake, source: str) -> dict[Hour, datetime]:
    """By log hour that is accounted for, when: of the log, as a year of hours is as many files."""
    files = lake.data_files(INGEST_ACCOUNTING, has_source(source))
    return {file.log_hour: file.written_at for file in files}


def _grown(lake: Lake, source: Source, before: Hour, now: datetime) -> list[Hour]:
    """The log hours in which something has come since they were finalised, whatever their age, or that never were."""
    streamed, accounted_at = _streamed(lake, source.name), _accounted_at(lake, source.name)
    may_have_grown = [
        hour
        for hour in streamed.keys() & accounted_at.keys()
        # A micro-batch is in the table a moment after the time that it says, an account as well.
        if streamed[hour]["written_at_max"] > accounted_at[hour] - _MOMENT
    ]
    finalised = lake.row_by_hour(INGEST_ACCOUNTING, source.name, may_have_grown)
    grown = {
        hour
        for hour in may_have_grown
        if streamed[hour]["written_at_max"] > finalised[hour]["ingested_at"]
        or streamed[hour]["lines_sum"] > finalised[hour]["lines"]
    }
    return sorted(
        grown | _left_behind(lake, source, [hour for hour in streamed if hour not in accounted_at], before, now)
    )


def _left_behind(lake: Lake, source: Source, hours: Iterable[Hour], before: Hour, now: datetime) -> set[Hour]:
    """Of these hours that have no account the first before one, as many as a run takes, whose time is over."""
    grace, position = timedelta(minutes=source.grace_minutes), position_of(lake.settings, source)
    earlier = sorted(hour for hour in hours if hour < before and now >= hour.end + grace)
    return {hour for hour in earlier[:MOST_HOURS_A_RUN] if not position.unread_files(hour)}


def _account(rows: Sequence[Mapping[str, Any]], known: Mapping[str, Any] | None) -> HourAccount | None:
    """The account of one log hour: what its rows of ``stream_batches`` add up to; ``known`` is the one that it has.

    Where those do not make up what is accounted for, as of an hour that was ingested before its source was streamed,
    what has come since is added to that; None if nothing has.
    """
    account = account_of(rows)
    if known is not None:
        since = [row for row in rows if row["written_at"] > known["ingested_at"]]
        if account.lines - sum(row["lines"] for row in since) < known["lines"]:
            if not since:
                return None
            read, account = account.files, account_of(since)
            account.add(HourAccount.of_row(known, dict(known["duplicates_of"]), read, known["damaged_files"]))
        account.reopened_log_hours |= set(known["reopened_log_hours"])
        account.click_hours |= set(known["click_hours"])
    return account


def described(source: Source, hours: Sequence[Hour], accounts: Mapping[Hour, HourAccount]) -> list[str]:
    """What the run of these hours has finalised, and which other ones with them."""
    lines = sum(account.lines for account in accounts.values())
    accepted = sum(account.accepted for account in accounts.values())
    left_out = sum(account.left_out.total() for account in accounts.values())
    not_counted = f", {left_out:,} left out" if left_out else ""
    texts = [
        f"{source.name}, streamed: {len(accounts)} log hours finalised, {lines:,} lines, {accepted:,} accepted"
        f"{not_counted}"
    ]
    others = set(accounts).difference(hours)
    if others:
        texts.append(f"  lines have come of log hours outside of the run: {hours_in_words(others)}")
    return texts

"""The accounting of a streamed source's log hours: settled, from its micro-batches' counts, once an hour is over.

Until then the hour is open: its clicks are in the lake, and are neither counted nor checked. So what a run counts is
what it checks, though the stream goes on meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame

from include.json_fields import SampledFields
from include.landing import LandedHour
from include.log_hours import Hour
from include.sources import Source, load_sources
from include.stream_position import StreamPosition, position_of
from include.tables import CLICKS, INGEST_ACCOUNTING, QUARANTINED_CLICKS, STREAM_BATCHES
from spark_jobs.hour_account import HourAccount
from spark_jobs.io import Lake, log_hours_predicate, quoted

#: With more files than this, the table of micro-batches is written as few.
MOST_FILES = 200
#: How long before the hours that are settled a settled one is looked at for records that have come since.
REOPENED_FOR_HOURS = 24
#: For how many days micro-batches are kept.
KEPT_DAYS = 7


def settle(lake: Lake, source: Source, hours: Sequence[Hour]) -> dict[Hour, HourAccount]:
    """Account for these log hours of a streamed source, and again for settled ones in which records have come since.

    Hold the lake's lock.
    """
    since = min(hours).plus(-REOPENED_FOR_HOURS)
    known = _settled_lines(lake, source.name, since)
    batches = _batches(lake, source.name, since)
    accounts = {hour: _account(batches.get(hour, [])) for hour in {*hours, *batches}}
    grown = sorted(hour for hour in known if hour in batches and accounts[hour].lines > known[hour])
    again = [hour for hour in grown if hour not in hours]
    # The run of these hours is to count what has come late to those.
    accounts[hours[-1]].click_hours |= {click_hour for hour in again for click_hour in accounts[hour].click_hours}
    # Of an hour settled long ago not all micro-batches are kept: its accounting stays.
    settled = [*again, *(hour for hour in hours if accounts[hour].lines >= known.get(hour, 0))]
    if not settled:
        return {}
    now, position = datetime.now(UTC), position_of(lake.settings, source)
    landed = {hour: _landed(position, hour, batches.get(hour, []), now) for hour in settled}
    rows = [accounts[hour].as_row(source.name, of_hour, now) for hour, of_hour in landed.items()]
    lake.replace_rows(INGEST_ACCOUNTING, rows, log_hours_predicate(source.name, settled))
    for table in (CLICKS, QUARANTINED_CLICKS):
        lake.write_as_few_files(table, log_hours_predicate(source.name, settled))
    lake.compact(STREAM_BATCHES, _done_with(lake, source.name, position, now), above_files=MOST_FILES)
    return {hour: accounts[hour] for hour in settled}


def settled_clicks(lake: Lake, clicks: DataFrame) -> DataFrame:
    """These rows of ``clicks`` but for those of log hours of streamed sources that are open still."""
    return less_open(clicks, open_log_hours(lake))


def open_log_hours(lake: Lake) -> dict[str, set[Hour]]:
    """The log hours of each streamed source that are not settled."""
    is_open: dict[str, set[Hour]] = {}
    for name, source in load_sources(lake.settings).items():
        if source.stream is not None and lake.exists(STREAM_BATCHES):
            rows = lake.read_rows(STREAM_BATCHES, ["log_date", "log_hour"], [("source", "=", name)])
            streamed = {_log_hour(row) for row in rows}
            is_open[name] = streamed - _settled_lines(lake, name, min(streamed)).keys() if streamed else set()
    return is_open


def less_open(clicks: DataFrame, is_open: Mapping[str, Iterable[Hour]]) -> DataFrame:
    """The clicks but those of these open log hours."""
    for name, hours in is_open.items():
        clicks = clicks.where(f"NOT ({log_hours_predicate(name, hours)})")
    return clicks


def _settled_lines(lake: Lake, source: str, since: Hour) -> dict[Hour, int]:
    """The lines of the log hours that are accounted for, of this one's day and all after."""
    where = [("source", "=", source), ("log_date", ">=", since.day)]
    rows = lake.read_rows(INGEST_ACCOUNTING, ["log_date", "log_hour", "lines"], where)
    return {_log_hour(row): row["lines"] for row in rows}


def _done_with(lake: Lake, source: str, position: StreamPosition, now: datetime) -> str:
    """A predicate for the micro-batches' rows that are older than they are kept for, and not needed any more."""
    oldest = (now - timedelta(days=KEPT_DAYS)).date()
    rows = lake.read_rows(STREAM_BATCHES, STREAM_BATCHES.column_names, [("source", "=", source)])
    return f"source = {quoted(source)} AND log_date < DATE'{oldest}' AND NOT ({position.still_needed(rows)})"


def _batches(lake: Lake, source: str, since: Hour) -> dict[Hour, list[dict[str, Any]]]:
    """The micro-batches' rows by log hour, of this one's day and all after."""
    found: dict[Hour, list[dict[str, Any]]] = {}
    where = [("source", "=", source), ("log_date", ">=", since.day)]
    for row in lake.read_rows(STREAM_BATCHES, STREAM_BATCHES.column_names, where):
        found.setdefault(_log_hour(row), []).append(row)
    return found


def _account(rows: Iterable[Mapping[str, Any]]) -> HourAccount:
    """The account of one log hour: the sum of its rows of ``stream_batches``."""
    account = HourAccount()
    for row in rows:
        quarantined = Counter(dict(row["quarantined_by_reason"]))
        # Of what log hour the first arrival was is not known: the stream's state has the id only.
        duplicates = {str(_log_hour(row)): row["lines"] - row["accepted"] - quarantined.total()}
        account.add(
            HourAccount(
                lines=row["lines"],
                # A landed file's name, or the partition of a topic.
                files={row["file"].rpartition("/")[2]},
                damaged_files={row["file"]} if row.get("damage") is not None else set(),
                accepted=row["accepted"],
                late=row["late"],
                out_of_order=row["out_of_order"],
                duplicates_of=Counter(duplicates),
                quarantined=quarantined,
                click_hours=set(row["click_hours"]),
                first_clicked_at=row["first_clicked_at"],
                last_clicked_at=row["last_clicked_at"],
                # Null where none was sampled, and in rows of earlier versions.
                sampled=SampledFields.of_rows(row["sampled_lines"], row["sampled_fields"])
                if row.get("sampled_lines")
                else None,
            )
        )
    return account


def _log_hour(row: Mapping[str, Any]) -> Hour:
    return Hour.of(row["log_date"], row["log_hour"])


def _landed(position: StreamPosition, hour: Hour, batches: Sequence[Mapping[str, Any]], now: datetime) -> LandedHour:
    return replace(position.landed(hour, batches), is_closed=position.has_read(hour, now))


def described(source: Source, accounts: Mapping[Hour, HourAccount]) -> str:
    """What was settled, in a line."""
    lines = sum(account.lines for account in accounts.values())
    accepted = sum(account.accepted for account in accounts.values())
    return f"{source.name}, streamed: {len(accounts)} log hours settled, {lines:,} lines, {accepted:,} accepted"

"""The accounting of a streamed source's log hours: settled, from its micro-batches' counts, once an hour is over.

Until then the hour is open: its clicks are in the lake, and are neither counted nor checked. So what a run counts is
what it checks, though the stream goes on meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from include.kafka import topic_of
from include.landing import LandedHour
from include.log_hours import Hour
from include.sources import Source, load_sources
from include.stream_position import has_passed
from include.tables import CLICKS, INGEST_ACCOUNTING, QUARANTINED_CLICKS, STREAM_BATCHES
from spark_jobs.hour_account import HourAccount
from spark_jobs.io import Lake, log_hours_predicate

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
    settled_at = _settled_at(lake, source.name, since)
    batches = _batches(lake, source.name, since)
    again = sorted(
        hour
        for hour, rows in batches.items()
        if hour not in hours and hour in settled_at and max(row["written_at"] for row in rows) > settled_at[hour]
    )
    now = datetime.now(UTC)
    accounts = {hour: _account(batches.get(hour, [])) for hour in [*again, *hours]}
    # The run of these hours is to count what has come late to those.
    accounts[hours[-1]].click_hours |= {click_hour for hour in again for click_hour in accounts[hour].click_hours}
    rows = [
        accounts[hour].as_row(source.name, _landed(lake, source, hour, batches.get(hour, []), now), frozenset(), now)
        for hour in accounts
    ]
    lake.replace(INGEST_ACCOUNTING, lake.rows(INGEST_ACCOUNTING, rows), log_hours_predicate(source.name, accounts))
    for table in (CLICKS, QUARANTINED_CLICKS):
        lake.write_as_few_files(table, log_hours_predicate(source.name, accounts))
    if lake.file_count(STREAM_BATCHES) > MOST_FILES:
        lake.compact(STREAM_BATCHES, leave_out=_done_with(lake, source, now))
    return {hour: accounts[hour] for hour in hours}


def settled_clicks(lake: Lake) -> DataFrame:
    """The clicks of all log hours but those of streamed sources that are open still."""
    clicks = lake.read(CLICKS)
    for name, source in load_sources(lake.settings).items():
        if source.kafka is not None and lake.exists(STREAM_BATCHES):
            rows = lake.read_rows(STREAM_BATCHES, ["log_date", "log_hour"], [("source", "=", name)])
            streamed = {Hour.of(row["log_date"], row["log_hour"]) for row in rows}
            is_open = streamed - _settled_at(lake, name, min(streamed)).keys() if streamed else set()
            clicks = clicks.where(f"NOT ({log_hours_predicate(name, is_open)})")
    return clicks


def _settled_at(lake: Lake, source: str, since: Hour) -> dict[Hour, datetime]:
    where = [("source", "=", source), ("log_date", ">=", since.day)]
    rows = lake.read_rows(INGEST_ACCOUNTING, ["log_date", "log_hour", "ingested_at"], where)
    return {Hour.of(row["log_date"], row["log_hour"]): row["ingested_at"] for row in rows}


def _done_with(lake: Lake, source: Source, now: datetime) -> str:
    """A predicate for the micro-batches' rows that are older than they are kept for, less each partition's last one.

    That one says how far the stream has read a partition that gets no records any more.
    """
    oldest = (now - timedelta(days=KEPT_DAYS)).date()
    rows = lake.read_rows(STREAM_BATCHES, ["partition", "last_offset"], [("source", "=", source.name)])
    last: dict[int, int] = {}
    for row in rows:
        last[row["partition"]] = max(row["last_offset"], last.get(row["partition"], 0))
    kept = " OR ".join(f"(partition = {partition} AND last_offset = {offset})" for partition, offset in last.items())
    return f"source = '{source.name}' AND log_date < DATE'{oldest}' AND NOT ({kept or 'false'})"


def _batches(lake: Lake, source: str, since: Hour) -> dict[Hour, list[dict[str, Any]]]:
    """The micro-batches' rows by log hour, of this one's day and all after."""
    found: dict[Hour, list[dict[str, Any]]] = {}
    where = [("source", "=", source), ("log_date", ">=", since.day)]
    for row in lake.read_rows(STREAM_BATCHES, STREAM_BATCHES.column_names, where):
        found.setdefault(Hour.of(row["log_date"], row["log_hour"]), []).append(row)
    return found


def _account(rows: Iterable[Mapping[str, Any]]) -> HourAccount:
    account = HourAccount()
    for row in rows:
        quarantined = Counter(dict(row["quarantined_by_reason"]))
        account.accepted += row["accepted"]
        account.late += row["late"]
        account.out_of_order += row["out_of_order"]
        account.quarantined += quarantined
        duplicates = row["lines"] - row["accepted"] - quarantined.total()
        if duplicates:
            # Of what log hour the first arrival was is not known: the stream's state has the id only.
            account.duplicates_of[str(Hour.of(row["log_date"], row["log_hour"]))] += duplicates
        account.click_hours |= set(row["click_hours"])
        account.ids_hash ^= row["ids_hash"]
        if row["accepted"]:
            account.first_clicked_at = min(filter(None, (account.first_clicked_at, row["first_clicked_at"])))
            account.last_clicked_at = max(filter(None, (account.last_clicked_at, row["last_clicked_at"])))
    return account


def _landed(lake: Lake, source: Source, hour: Hour, rows: Sequence[Mapping[str, Any]], now: datetime) -> LandedHour:
    """A log hour of a topic as if it were a landing partition with a file for each partition of the topic."""
    topic = topic_of(source).topic
    return LandedHour(
        folder=Path(topic),
        hour=hour,
        files=tuple(Path(topic, str(partition)) for partition in sorted({row["partition"] for row in rows})),
        size_bytes=sum(row["bytes"] for row in rows),
        is_closed=has_passed(lake.settings, source, hour, now),
    )


def described(source: Source, accounts: Mapping[Hour, HourAccount]) -> str:
    """What was settled, in a line."""
    lines = sum(account.lines for account in accounts.values())
    accepted = sum(account.accepted for account in accounts.values())
    return f"{source.name}, streamed: {len(accounts)} log hours settled, {lines:,} lines, {accepted:,} accepted"

"""The rows of ``stream_batches``: added up to the account of a log hour, and kept few without forgetting a line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from include.hours import Hour, log_hour_of, log_hours_predicate
from include.landing import hour_folder
from include.tables import STREAM_BATCHES
from spark_jobs.hours.account import HourAccount, left_out_of
from spark_jobs.lake.lake import Lake

#: With more files than this, the table is written as few.
MOST_FILES = 200
#: For how many days a micro-batch has its own rows.
KEPT_DAYS = 7

_PLACE = ("stream_id", "topic", "partition", "log_date", "log_hour", "file", "damage")


@contextmanager
def in_order_of_time(lake: Lake) -> Iterator[datetime]:
    """Now, and until the end nobody else adds rows or accounts for hours: what is read here later says a later time.

    Only the time says what is new of an hour that had been ingested before its source was streamed.
    """
    with lake.locked("stream-accounts"):
        yield datetime.now(UTC)


def account_of(rows: Iterable[Mapping[str, Any]]) -> HourAccount:
    """The account of what these rows have of one log hour."""
    account = HourAccount()
    for row in rows:
        others = sum(dict(row["quarantined_by_reason"]).values()) + left_out_of(row).total()
        # Of what log hour the first arrival was is not known: the stream's state has the id only.
        duplicates_of = {str(log_hour_of(row)): row["lines"] - row["accepted"] - others}
        # A landed file's name, or the partition of a topic.
        files = {row["file"].rpartition("/")[2]} if row["file"] is not None else set()
        damaged_files = {row["file"]} if row["damage"] is not None else set()
        account.add(HourAccount.of_row(row, duplicates_of, files, damaged_files))
    return account


def forget_counts(lake: Lake, source: str, hours: Collection[Hour]) -> None:
    """Let micro-batches say of these log hours only how far they have read: the batch has read the lines again."""
    batches = lake.rows_by_hour(STREAM_BATCHES, source, hours)
    rows = [
        row | HourAccount(click_hours=set(row["click_hours"])).of_lines()
        for of_hour in batches.values()
        for row in of_hour
    ]
    if rows:
        lake.replace_rows(STREAM_BATCHES, rows, log_hours_predicate(source, batches))


def write_as_few(lake: Lake, source: str, now: datetime) -> None:
    """Write the table, if it has many files, as few, and a source's old micro-batches as one row for each place.

    Sums stay what they are, and so does what says how far a stream has read: each partition of a topic, and the names
    of files that broke off or whose log hour is in the landing zone still. Hold the lake's lock.
    """
    if lake.compact(STREAM_BATCHES, above_files=MOST_FILES):
        _sum_up(lake, source, now - timedelta(days=KEPT_DAYS))


def _sum_up(lake: Lake, source: str, before: datetime) -> None:
    # Nobody else writes rows so old: what is read here is what is replaced.
    old = [("source", "=", source), ("written_at", "<", before)]
    places = lake.read_rows(STREAM_BATCHES, _PLACE, old)
    landing = lake.settings.landing
    landed = {hour for hour in set(map(log_hour_of, places)) if hour_folder(landing, source, hour).is_dir()}
    times = Counter(_place(row, landed) for row in places)
    hours = {log_hour_of(row) for row in places if times[_place(row, landed)] > 1}
    if not hours:
        return
    of_days = [*old, ("log_date", "in", sorted({hour.day for hour in hours}))]
    together: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in lake.read_rows(STREAM_BATCHES, STREAM_BATCHES.column_names, of_days):
        if log_hour_of(row) in hours:
            together.setdefault(_place(row, landed), []).append(row)
    sums = [_sum(rows, file) for (*_, file), rows in together.items()]
    predicate = f"{log_hours_predicate(source, hours)} AND written_at < '{before.isoformat()}'"
    lake.replace_rows(STREAM_BATCHES, sums, predicate)


def _place(row: Mapping[str, Any], landed: Collection[Hour]) -> tuple[Any, ...]:
    """What rows have in common that may be one: the file is none where its name is not asked for any more."""
    is_named = row["topic"] is not None or row["damage"] is not None or log_hour_of(row) in landed
    file = row["file"] if is_named else None
    return row["stream_id"], row["topic"], row["partition"], log_hour_of(row), row["damage"], file


def _sum(rows: Sequence[Mapping[str, Any]], file: str | None) -> dict[str, Any]:
    """One row for all of the same place; of several files there are no first and last line."""
    is_one_place = file is not None or rows[0]["topic"] is not None
    return {
        **rows[0],
        **account_of(rows).of_lines(),
        "batch_id": max(row["batch_id"] for row in rows),
        "file": file,
        "first_offset": min(row["first_offset"] for row in rows) if is_one_place else None,
        "last_offset": max(row["last_offset"] for row in rows) if is_one_place else None,
        "bytes": sum(row["bytes"] for row in rows),
        "written_at": max(row["written_at"] for row in rows),
    }

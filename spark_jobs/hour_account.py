"""The account of one log hour, put together from the counts that Spark made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from pyspark.sql import Row

from include.json_fields import SampledFields, sampled_fields
from include.landing import LandedHour
from include.log_hours import Hour
from include.sources import Source


@dataclass
class HourAccount:
    """What became of one log hour's lines; the counts of ``ingest_accounting``."""

    accepted: int = 0
    late: int = 0
    out_of_order: int = 0
    duplicates_of: Counter[str] = field(default_factory=Counter)
    quarantined: Counter[str] = field(default_factory=Counter)
    click_hours: set[str] = field(default_factory=set)
    first_clicked_at: datetime | None = None
    last_clicked_at: datetime | None = None
    ids_hash: int = 0
    sampled: SampledFields | None = None

    @property
    def lines(self) -> int:
        """All of them."""
        return self.accepted + self.duplicates_of.total() + self.quarantined.total()

    def add_accepted(self, row: Row, log_hour: Hour, click_hour: Hour) -> None:
        """Count the accepted clicks of one click hour."""
        self.accepted += row["lines"]
        self.late += row["lines"] if click_hour < log_hour else 0
        self.click_hours.add(str(click_hour))
        self.first_clicked_at = min(filter(None, (self.first_clicked_at, row["first_clicked_at"])))
        self.last_clicked_at = max(filter(None, (self.last_clicked_at, row["last_clicked_at"])))
        self.ids_hash ^= row["ids_hash"] or 0

    def add(self, other: HourAccount) -> None:
        """Count other lines of the same log hour."""
        self.accepted += other.accepted
        self.late += other.late
        self.out_of_order += other.out_of_order
        self.duplicates_of += other.duplicates_of
        self.quarantined += other.quarantined
        self.click_hours |= other.click_hours
        self.first_clicked_at = min(filter(None, (self.first_clicked_at, other.first_clicked_at)), default=None)
        self.last_clicked_at = max(filter(None, (self.last_clicked_at, other.last_clicked_at)), default=None)
        self.ids_hash ^= other.ids_hash
        if other.sampled is not None:
            self.sampled = self.sampled + other.sampled if self.sampled else other.sampled

    def add_fields(self, shapes: Iterable[Row], source: Source) -> None:
        """Keep what the sampled lines of a JSON source have: rows of ``line_shapes``."""
        assert source.fields is not None
        sampled = sampled_fields((row["example"], row["lines"]) for row in shapes)
        # Client addresses are kept in no table of good lines, so not as an example either.
        addresses = [source.fields.client_address] if source.fields.client_address else []
        self.sampled = sampled.less(left_out=source.unwatched_fields, without_example=addresses)

    def as_row(self, source: str, landed: LandedHour, damaged: frozenset[str], now: datetime) -> tuple[object, ...]:
        """A row of ``ingest_accounting``, in its columns' order."""
        return (
            source,
            landed.hour.day,
            landed.hour.hour,
            self.lines,
            self.accepted,
            self.duplicates_of.total(),
            dict(self.duplicates_of),
            self.quarantined.total(),
            dict(self.quarantined),
            self.late,
            self.out_of_order,
            self.first_clicked_at,
            self.last_clicked_at,
            self.ids_hash,
            len(landed.files),
            landed.size_bytes,
            sorted(file.name for file in landed.files if str(file) in damaged),
            landed.is_closed,
            sorted(self.click_hours),
            *sampled_columns(self.sampled),
            now,
        )


def sampled_columns(sampled: SampledFields | None) -> tuple[object, object]:
    """``sampled_lines`` and ``sampled_fields``, as ``ingest_accounting`` and ``stream_batches`` have them."""
    return (None, None) if sampled is None else (sampled.lines, sampled.as_rows())


def accounts_of(hours: Iterable[Hour], outcomes: Iterable[Row], out_of_order: Iterable[Row]) -> dict[Hour, HourAccount]:
    """One account per log hour, of no lines where there were none.

    ``outcomes`` and ``out_of_order`` are the rows of ``spark_jobs.transforms.account_for_lines``.
    """
    accounts = {hour: HourAccount() for hour in hours}
    for row in outcomes:
        log_hour = Hour.of_number(row["log_hour_number"])
        account = accounts[log_hour]
        if row["reason"] is not None:
            account.quarantined[row["reason"]] += row["lines"]
        elif row["first_hour"] is not None:
            account.duplicates_of[str(Hour.of_number(row["first_hour"]))] += row["lines"]
        else:
            account.add_accepted(row, log_hour, Hour.of_number(row["click_hour"]))
    for row in out_of_order:
        accounts[Hour.of_number(row["log_hour_number"])].out_of_order = row["out_of_order"]
    return accounts

"""The account of one log hour, put together from the counts that Spark made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pyspark.sql import Row

from include.hours import Hour
from include.landing import SUCCESS, LandedHour, as_landed_files
from include.storage import Entry
from spark_jobs.lines.json_fields import SampledFields
from spark_jobs.lines.kept import rule_of_reason
from spark_jobs.lines.read_lines import ReadFile
from spark_jobs.lines.sampled_lines import fields_of


@dataclass
class HourAccount:
    """What became of one log hour's lines; the counts of ``ingest_accounting``.

    ``lines`` are those that were read from ``files``, counted by who reads: that the others add up to them is a check,
    and that no other file was there.
    """

    lines: int = 0
    files: set[str] = field(default_factory=set)
    damaged_files: set[str] = field(default_factory=set)
    accepted: int = 0
    late: int = 0
    out_of_order: int = 0
    duplicates_of: Counter[str] = field(default_factory=Counter)
    quarantined: Counter[str] = field(default_factory=Counter)
    #: By rule.
    left_out: Counter[str] = field(default_factory=Counter)
    click_hours: set[str] = field(default_factory=set)
    #: Those that it touches, and nobody counts again.
    closed: set[str] = field(default_factory=set)
    reopened_log_hours: set[str] = field(default_factory=set)
    first_clicked_at: datetime | None = None
    last_clicked_at: datetime | None = None
    sampled: SampledFields | None = None

    @classmethod
    def of_row(
        cls, row: Mapping[str, Any], duplicates_of: Mapping[str, int], files: Set[str], damaged_files: Iterable[str]
    ) -> HourAccount:
        """What a row of ``ingest_accounting`` or ``stream_batches`` has counted, and what only one of them says."""
        return cls(
            lines=row["lines"],
            files=set(files),
            damaged_files=set(damaged_files),
            accepted=row["accepted"],
            late=row["late"],
            out_of_order=row["out_of_order"],
            duplicates_of=Counter(dict(duplicates_of)),
            quarantined=Counter(dict(row["quarantined_by_reason"])),
            left_out=left_out_of(row),
            click_hours=set(row["click_hours"]),
            first_clicked_at=row["first_clicked_at"],
            last_clicked_at=row["last_clicked_at"],
            sampled=_sampled(row),
        )

    def add_outcome(self, row: Row | Mapping[str, Any], log_hour: Hour) -> None:
        """Count the lines of one outcome, a row of ``spark_jobs.ingest.outcomes`` or of ``OUTCOMES`` of a stream."""
        if row["reason"] is not None:
            self.add_refused(row["reason"], row["lines"])
        elif "first_hour" in row and row["first_hour"] is not None:
            self.duplicates_of[str(Hour.of_number(row["first_hour"]))] += row["lines"]
        else:
            self.add_accepted(row, log_hour, Hour.of_number(row["click_hour"]))

    def add_accepted(self, row: Row | Mapping[str, Any], log_hour: Hour, click_hour: Hour) -> None:
        """Count the accepted clicks of one click hour."""
        self.accepted += row["lines"]
        self.out_of_order += row["out_of_order"]
        self.late += row["lines"] if click_hour < log_hour else 0
        self.click_hours.add(str(click_hour))
        self.first_clicked_at = min(filter(None, (self.first_clicked_at, row["first_clicked_at"])), default=None)
        self.last_clicked_at = max(filter(None, (self.last_clicked_at, row["last_clicked_at"])), default=None)

    def add_refused(self, reason: str, lines: int) -> None:
        """Count lines that are no clicks, whose reason this is."""
        rule = rule_of_reason(reason)
        if rule is None:
            self.quarantined[reason] += lines
        else:
            self.left_out[rule] += lines

    def add(self, other: HourAccount) -> None:
        """Count other lines of the same log hour."""
        self.lines += other.lines
        self.files |= other.files
        self.damaged_files |= other.damaged_files
        self.accepted += other.accepted
        self.late += other.late
        self.out_of_order += other.out_of_order
        # Not by +, which drops what is below 0: a replay takes lines out of the quarantine, and may be withdrawn.
        self.duplicates_of.update(other.duplicates_of)
        self.quarantined.update(other.quarantined)
        self.left_out.update(other.left_out)
        self.click_hours |= other.click_hours
        self.first_clicked_at = min(filter(None, (self.first_clicked_at, other.first_clicked_at)), default=None)
        self.last_clicked_at = max(filter(None, (self.last_clicked_at, other.last_clicked_at)), default=None)
        if other.sampled is not None:
            self.add_sampled(other.sampled)

    def keep_read(self, row: Mapping[str, Any]) -> None:
        """Say what was read as this row does, of ``ingest_accounting`` or ``stream_batches``: nobody reads it again."""
        self.lines, self.left_out, self.sampled = row["lines"], left_out_of(row), _sampled(row)

    def leave_out(self, closed: Set[str]) -> None:
        """Let nobody count these click hours for it."""
        self.closed = self.click_hours & closed
        self.click_hours -= closed

    def add_sampled(self, fields: SampledFields) -> None:
        """Keep what more sampled lines have, of a JSON source."""
        self.sampled = self.sampled + fields if self.sampled else fields

    def of_lines(self) -> dict[str, Any]:
        """What both ``ingest_accounting`` and ``stream_batches`` say of the lines, by column."""
        return {
            "lines": self.lines,
            "quarantined_by_reason": {reason: count for reason, count in self.quarantined.items() if count},
            "left_out_by_rule": {rule: count for rule, count in self.left_out.items() if count},
            "accepted": self.accepted,
            "late": self.late,
            "out_of_order": self.out_of_order,
            "first_clicked_at": self.first_clicked_at,
            "last_clicked_at": self.last_clicked_at,
            "click_hours": sorted(self.click_hours),
            "sampled_lines": self.sampled.lines if self.sampled else None,
            "sampled_fields": self.sampled.as_rows() if self.sampled else None,
        }

    def totals(self) -> dict[str, Any]:
        """What ``ingest_accounting`` says of the lines beside that."""
        return {
            "duplicates": self.duplicates_of.total(),
            "duplicates_of": {hour: count for hour, count in self.duplicates_of.items() if count},
            "quarantined": self.quarantined.total(),
            "left_out": self.left_out.total(),
        }

    def as_row(self, source: str, landed: LandedHour, now: datetime) -> dict[str, Any]:
        """A row of ``ingest_accounting``."""
        return {
            "source": source,
            "log_date": landed.hour.day,
            "log_hour": landed.hour.hour,
            **self.of_lines(),
            **self.totals(),
            "files": len(landed.files),
            "bytes": landed.size_bytes,
            "damaged_files": sorted(self.damaged_files),
            "unread_files": landed.unread(self.files),
            "looked_at": landed.looked_at,
            "landed_files": as_landed_files(landed.listed) if landed.looked_at else None,
            "is_closed": landed.is_closed,
            "reopened_log_hours": sorted(self.reopened_log_hours),
            "ingested_at": now,
        }


def recounted(row: Mapping[str, Any], account: HourAccount, now: datetime) -> dict[str, Any]:
    """A row of ``ingest_accounting`` of a log hour whose lines are other rows now; what was read of files stays."""
    return {**row, **account.of_lines(), **account.totals(), "ingested_at": now}


def with_rewritten(row: Mapping[str, Any], rewritten: Iterable[tuple[Entry, Entry]]) -> dict[str, Any]:
    """A row of ``ingest_accounting`` of a log hour of which somebody else than the uploader has rewritten files.

    Each file is given as it was found just before it was read to be rewritten, and as it is since. What was read in
    the former state is read in the latter; what had landed since then, and was not read, still is not. Whoever writes
    over a landed file calls this, and writes the row, holding the lake's lock: else the hour waits to be run again,
    and its landing partition is never removed.
    """
    landed = {file["name"]: file for file in row["landed_files"] or ()}
    for before, after in rewritten:
        (former,), (now,) = as_landed_files([before]), as_landed_files([after])
        if landed.get(former["name"]) == former:
            landed[now["name"]] = now
    return {**row, "landed_files": list(landed.values()) or row["landed_files"]}


def listed_first(row: dict[str, Any], former: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A row of ``ingest_accounting`` in which files stay as they were listed first: a stream reads each once."""
    if row["landed_files"] is None:
        return row
    once = (file for file in former if file["name"] != SUCCESS)
    listed = {file["name"]: file for file in (*row["landed_files"], *once)}
    return row | {"landed_files": [listed[file["name"]] for file in row["landed_files"]]}


def with_reopened(row: Mapping[str, Any], log_hours: Iterable[Hour]) -> dict[str, Any]:
    """A row of ``ingest_accounting`` that stays, but that these log hours were accounted for again with it."""
    return {**row, "reopened_log_hours": sorted({*row["reopened_log_hours"], *map(str, log_hours)})}


def left_out_of(row: Mapping[str, Any]) -> Counter[str]:
    """The lines that were left out by rule, of a row of ``ingest_accounting`` or ``stream_batches``."""
    # Null where none could be.
    return Counter(dict(row["left_out_by_rule"] or ()))


def _sampled(row: Mapping[str, Any]) -> SampledFields | None:
    return None if row["sampled_lines"] is None else fields_of(row)


def described_closed(accounts: Iterable[HourAccount]) -> list[str]:
    """A line for each click hour that log hours touch and that stays as it was counted."""
    closed = sorted(set[str]().union(*(account.closed for account in accounts)))
    return [f"  {hour} stays as it was counted: clicks of it have been removed for their age" for hour in closed]


def accounts_of(hours: Iterable[Hour], read: Iterable[ReadFile], outcomes: Iterable[Row]) -> dict[Hour, HourAccount]:
    """One account per log hour, of no lines where there were none.

    ``outcomes`` are the rows of ``spark_jobs.ingest.outcomes``. A log hour of which nothing is ``read``
    has no lines; what became of its stored ones is counted all the same.
    """
    accounts = {hour: HourAccount() for hour in hours}
    for of_file in read:
        account = accounts[of_file.file.hour]
        account.lines += of_file.lines
        account.files.add(of_file.file.name)
        if of_file.damage is not None:
            account.damaged_files.add(of_file.file.name)
    for row in outcomes:
        log_hour = Hour.of_number(row["log_hour_number"])
        accounts[log_hour].add_outcome(row, log_hour)
    return accounts

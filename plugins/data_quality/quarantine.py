"""What was quarantined of a log hour, read from the table without Spark: how many lines by reason, where some are.

Not their text: it may hold clients' addresses, and more people see pages than the lake.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields, replace

import pyarrow as pa
import pyarrow.compute as pc

from include.hours import Hour
from include.settings import Settings
from include.stored_rows import StoredLake, of_log_hour
from include.tables import QUARANTINED_CLICKS, REPLAY_OUTCOMES

SAMPLES_PER_REASON = 5
_COLUMNS = ("source", "reason", "file", "line")


@dataclass(frozen=True)
class QuarantinedLine:
    """Where a rejected line is."""

    file: str
    line: int


@dataclass(frozen=True)
class ReplayOutcome:
    """What the last replay, or dry run of one, made of lines; ``replay_id`` is null for a dry run."""

    clicks: int
    duplicates: int
    stay: int
    replay_id: str | None
    at: str


@dataclass(frozen=True)
class Quarantine:
    """The rejected lines of a source's log hour: how many by reason, most first, and some of each.

    ``replays`` has, by reason, what a replay recovers, or has: then there may be no lines of the reason any more.
    """

    source: str
    lines: dict[str, int]
    samples: dict[str, list[QuarantinedLine]]
    replays: dict[str, ReplayOutcome] = field(default_factory=dict)


def read_quarantine(settings: Settings, hour: Hour, source: str | None = None) -> list[Quarantine]:
    """By source; only those with rejected lines, now or before a replay. Reads the files of that log hour."""
    by_source = {of_source.source: of_source for of_source in _read_lines(settings, hour, source)}
    for name, replays in _read_replays(settings, hour, source).items():
        by_source[name] = replace(by_source.get(name, Quarantine(name, {}, {})), replays=replays)
    return [by_source[name] for name in sorted(by_source)]


def _read_replays(settings: Settings, hour: Hour, source: str | None) -> dict[str, dict[str, ReplayOutcome]]:
    replays: dict[str, dict[str, ReplayOutcome]] = {}
    for row in StoredLake(settings.lake).read_rows(REPLAY_OUTCOMES, REPLAY_OUTCOMES.column_names, of_log_hour(hour)):
        if source in (None, row["source"]):
            values = {field.name: row[field.name] for field in fields(ReplayOutcome)} | {"at": row["at"].isoformat()}
            replays.setdefault(row["source"], {})[row["reason"]] = ReplayOutcome(**values)
    return replays


def _read_lines(settings: Settings, hour: Hour, source: str | None) -> list[Quarantine]:
    lines: dict[str, Counter[str]] = {}
    samples: dict[str, dict[str, list[QuarantinedLine]]] = {}
    # A batch at a time: all lines of an hour may be wrong.
    for batch in StoredLake(settings.lake).open_table(QUARANTINED_CLICKS, _COLUMNS, [of_log_hour(hour, source)]):
        rows = pa.Table.from_batches([batch])
        for group in rows.group_by(["source", "reason"]).aggregate([([], "count_all")]).to_pylist():
            name, reason = group["source"], group["reason"]
            lines.setdefault(name, Counter())[reason] += group["count_all"]
            of_reason = samples.setdefault(name, {}).setdefault(reason, [])
            of_group = rows.filter((pc.field("source") == name) & (pc.field("reason") == reason))
            wanted = of_group.select(["file", "line"]).slice(0, SAMPLES_PER_REASON - len(of_reason))
            of_reason += [QuarantinedLine(**row) for row in wanted.to_pylist()]
    return [
        Quarantine(name, dict(sorted(counts.items(), key=lambda count: (-count[1], count[0]))), samples[name])
        for name, counts in lines.items()
    ]

"""What was quarantined of a log hour, read from the table without Spark: how many lines by reason, where some are.

Not their text: it may hold clients' addresses, and more people see pages than the lake.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

from include.log_hours import Hour
from include.settings import Settings
from include.storage import table_files
from include.stored_rows import read_rows
from include.tables import QUARANTINED_CLICKS, REPLAY_OUTCOMES

SAMPLES_PER_REASON = 5


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
    found = {of_source.source: of_source for of_source in _read_lines(settings, hour, source)}
    for name, replays in _read_replays(settings, hour, source).items():
        found[name] = replace(found.get(name, Quarantine(name, {}, {})), replays=replays)
    return [found[name] for name in sorted(found)]


def _read_replays(settings: Settings, hour: Hour, source: str | None) -> dict[str, dict[str, ReplayOutcome]]:
    of_hour = [("log_date", "=", hour.day), ("log_hour", "=", hour.hour)]
    replays: dict[str, dict[str, ReplayOutcome]] = {}
    for row in read_rows(settings.lake, REPLAY_OUTCOMES, REPLAY_OUTCOMES.column_names, of_hour):
        if source in (None, row["source"]):
            values = {of.name: row[of.name] for of in fields(ReplayOutcome)} | {"at": row["at"].isoformat()}
            replays.setdefault(row["source"], {})[row["reason"]] = ReplayOutcome(**values)
    return replays


def _read_lines(settings: Settings, hour: Hour, source: str | None) -> list[Quarantine]:
    import pyarrow.compute as pc
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    path = settings.lake / QUARANTINED_CLICKS.name
    try:
        table = DeltaTable(str(path))
    except TableNotFoundError:
        return []
    of_hour = [("log_date", "=", hour.day.isoformat()), ("log_hour", "=", str(hour.hour))]
    names = sorted({str(partition["source"]) for partition in table.partitions(file_pruning_predicate=of_hour)})
    found = []
    for name in names if source is None else [name for name in names if name == source]:
        rows = table.to_pyarrow_dataset(
            file_pruning_predicate=[("source", "=", name), *of_hour], filesystem=table_files(path)
        )
        reasons = rows.to_table(columns=["reason"])["reason"]
        counts = sorted(
            ((count["values"], count["counts"]) for count in pc.value_counts(reasons).to_pylist()),
            key=lambda count: (-count[1], count[0]),
        )
        places = {reason: pc.indices_nonzero(pc.equal(reasons, reason))[:SAMPLES_PER_REASON] for reason, _ in counts}
        found.append(
            Quarantine(
                name,
                dict(counts),
                {
                    reason: [
                        QuarantinedLine(**row) for row in rows.take(of_reason, columns=["file", "line"]).to_pylist()
                    ]
                    for reason, of_reason in places.items()
                },
            )
        )
    return found

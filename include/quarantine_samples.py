"""What was quarantined of a log hour, read from the table without Spark: how many lines by reason, some of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from include.log_hours import Hour
from include.settings import Settings
from include.tables import QUARANTINED_CLICKS

SAMPLES_PER_REASON = 5


@dataclass(frozen=True)
class QuarantinedLine:
    """One rejected line."""

    file: str
    line: int
    raw: str


@dataclass(frozen=True)
class Quarantine:
    """The rejected lines of a source's log hour: how many by reason, most first, and some of each."""

    source: str
    lines: dict[str, int]
    samples: dict[str, list[QuarantinedLine]]


def read_quarantine(settings: Settings, hour: Hour, source: str | None = None) -> list[Quarantine]:
    """By source; only those with rejected lines. Reads the files of that log hour, and of ``raw`` a few rows."""
    import pyarrow.compute as pc
    import pyarrow.dataset as ds
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    try:
        table = DeltaTable(settings.lake / QUARANTINED_CLICKS.name)
    except TableNotFoundError:
        return []
    of_hour = [("log_date", "=", hour.day.isoformat()), ("log_hour", "=", str(hour.hour))]
    names = sorted({str(partition["source"]) for partition in table.partitions(of_hour)})
    found = []
    for name in names if source is None else [name for name in names if name == source]:
        rows = ds.dataset(table.file_uris([("source", "=", name), *of_hour]), format="parquet")
        counted: Counter[str] = Counter()
        for batch in rows.to_batches(columns=["reason"]):
            for counts in pc.value_counts(batch["reason"]).to_pylist():
                counted[counts["values"]] += counts["counts"]
        found.append(
            Quarantine(
                name,
                dict(counted.most_common()),
                {
                    reason: [
                        QuarantinedLine(**row)
                        for row in rows.head(
                            SAMPLES_PER_REASON,
                            columns=["file", "line", "raw"],
                            filter=ds.field("reason") == reason,
                            batch_size=1024,
                        ).to_pylist()
                    ]
                    for reason in counted
                },
            )
        )
    return found

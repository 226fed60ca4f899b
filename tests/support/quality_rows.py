"""Rows of ``quality_results`` and ``journal`` as runs leave them, made up from a seed: for tests of pages."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from include.holds import event_row
from include.hours import Hour
from include.journal import Act
from include.stored_rows import arrow_schema
from include.tables import JOURNAL, QUALITY_RESULTS

_FIRST = datetime(2026, 3, 1, 6, 5, tzinfo=UTC)
#: A row of ``journal``.
Event = dict[str, Any]


@dataclass(frozen=True)
class Checked:
    """A check that is made up; with a ``mean`` it is on a number, which deviates by so much."""

    suite: str
    name: str
    table: str
    severity: str
    holds: str
    reason: str
    of_source: bool = True
    mean: float | None = None
    deviation: float = 0.0


CHECKS = (
    Checked(
        "reconciliation", "lines_add_up", "clicks", "critical", "lines = clicks + duplicates + lines in quarantine",
        "No line vanishes and none is counted twice. Ingest the log hour again.",
    ),
    Checked(
        "clicks", "no_event_id_twice", "clicks", "critical", "no event id is accepted twice within the lateness window",
        "A click would be counted twice. Ingest the log hours again, the earlier one first.", mean=0.0,
    ),
    Checked(
        "clicks", "quarantined_share", "quarantined_clicks", "warning", "at most 3.6% of the lines are quarantined",
        "A source that changes its format shows here first. Look at the reasons.", mean=0.02, deviation=0.004,
    ),
    Checked(
        "clicks", "unknown_country_share", "clicks", "warning", "at most 18% of the clicks are of no known country",
        "The country database may be old. Name a newer one in config/pipeline.toml.", mean=0.1, deviation=0.02,
    ),
    Checked(
        "volume", "clicks", "clicks", "warning", "about as many clicks as at this hour of previous days",
        "Files may be missing, or the site is down. Ask the source.", mean=20_000, deviation=900,
    ),
    Checked(
        "schema_drift", "no_new_fields", "clicks", "warning", "no field that was never seen before",
        "The source has changed. Map the field in config/sources.toml, or leave it.",
    ),
    Checked(
        "reconciliation", "urls_equal_countries", "clicks_by_url_hourly", "critical",
        "clicks summed over URLs = clicks summed over countries",
        "One of the tables is older than the other. Run aggregate_clicks again.", of_source=False,
    ),
    Checked(
        "aggregates", "top_url_share", "clicks_by_url_hourly", "warning", "no URL has more than 28% of the clicks",
        "A crawler that hides, or a broken page that reloads itself.", of_source=False, mean=0.2, deviation=0.02,
    ),
    Checked(
        "layout", "url_same_buckets", "clicks_by_url_hourly", "critical", "every stored bucket is what its key says",
        "Tables that are not co-partitioned join wrongly. Run repartition_tables.", of_source=False,
    ),
    Checked(
        "load", "skew", "grouping_metrics", "warning", "the busiest instance has at most 2.2 times the mean",
        "Cores idle. Ask advise_grouping for a better grouping.", of_source=False, mean=1.4, deviation=0.2,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One row of ``quality_results``, with a check that passed as its default."""

    run_id: str = "run-1"
    validated_at: datetime = _FIRST
    suite: str = "clicks"
    partition: str = "web 2026-03-01T05"
    source: str | None = "web"
    hour: str = "2026-03-01T05"
    checked_table: str = "clicks"
    check_id: str = "no_event_id_twice"
    expectation: str = "no event id is accepted twice"
    severity: str = "critical"
    outcome: str = "pass"
    observed: str | None = "duplicate_event_ids = 0"
    observed_value: float | None = 0.0
    lowest: float | None = 0.0
    highest: float | None = 0.0
    advice: str | None = "A click would be counted twice. Ingest the log hours again, the earlier one first."
    examples: list[str] = field(default_factory=list)
    duration_seconds: float | None = 1.5
    link: str | None = "data_docs/run-1/log_hours.html"


def event(
    hour: str, outcome: str, why: str = "", actor: str | None = None, *, run_id: str = "run-1", at: datetime = _FIRST,
    **values: Any,
) -> Event:  # fmt: skip
    """What became of a click hour; ``values`` are as ``include.holds.event_row`` takes them."""
    return event_row(Act(run_id, "publish_clicks"), at, Hour.parse(hour), outcome, why, actor=actor, **values)


def append(lake: Path, rows: Iterable[Row | Event]) -> None:
    """A commit to ``quality_results`` of this lake, and one to ``journal``, as jobs make them."""
    rows = list(rows)
    results = [asdict(row) for row in rows if isinstance(row, Row)]
    events = [row for row in rows if not isinstance(row, Row)]
    for table, of_table in ((QUALITY_RESULTS, results), (JOURNAL, events)):
        if of_table:
            arrow = pa.Table.from_pylist(of_table, arrow_schema(table, table.column_names))
            write_deltalake(lake / table.name, arrow, mode="append", partition_by=list(table.partitioned_by) or None)


def validated_hours(
    start: Hour, hours: int, sources: Sequence[str] = ("web", "shop"), seed: int = 1
) -> list[list[Row | Event]]:
    """What so many runs leave, one list each: mostly good hours, some that warn, a few that fail and are held."""
    chance = random.Random(seed)
    return [_validated(start.plus(number), sources, chance) for number in range(hours)]


def _validated(hour: Hour, sources: Sequence[str], chance: random.Random) -> list[Row | Event]:
    at = hour.end + timedelta(minutes=chance.randint(4, 20))
    run_id = f"{at:%Y%m%dT%H%M%S}-{chance.getrandbits(32):08x}"
    rows, reasons = [], []
    for check in CHECKS:
        for source in sources if check.of_source else (None,):
            partition = f"count_by_url {hour}" if check.suite == "load" else f"{source} {hour}" if source else str(hour)
            fails = chance.random() < (0.001 if check.severity == "critical" else 0.01)
            mean, deviation = check.mean, check.deviation
            value = None if mean is None else mean + (chance.gauss(0, 1) + (8 if fails else 0)) * deviation
            if mean == 0:
                value = float(fails * chance.randint(1, 40))
            observed = "found 12 and 12" if value is None else f"{check.name} = {value:,.4g}"
            if fails and check.severity == "critical":
                reasons.append(f"{partition}: expected {check.holds}; found {observed}")
            rows.append(
                Row(
                    run_id, at, check.suite, partition, source, str(hour), check.table, check.name, check.holds,
                    check.severity, "fail" if fails else "pass", observed, value,
                    None if mean is None else max(0.0, mean - 4 * deviation),
                    None if mean is None else mean + 4 * deviation,
                    check.reason,
                    [f"https://example.com/{number}" for number in range(3)] if fails else [],
                    2.0, f"data_docs/{run_id}/log_hours.html",
                )
            )  # fmt: skip
    outcome = ("held", "; ".join(reasons)) if reasons else ("published", "all critical checks passed")
    return [*rows, event(str(hour), *outcome, run_id=run_id, at=at + timedelta(seconds=30))]

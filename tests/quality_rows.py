"""Rows of ``quality_results`` as validations leave them, made up from a seed: for tests and benchmarks of pages."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from include.log_hours import Hour
from include.tables import QUALITY_RESULTS

_ARROW = {
    "STRING": pa.string(),
    "ARRAY<STRING>": pa.list_(pa.string()),
    "DOUBLE": pa.float64(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
}
#: Suite, check, table, severity, what holds, whether of a source; a mean and a deviation where it is a number.
CHECKS: tuple[tuple[str, str, str, str, str, bool, float | None, float], ...] = (
    ("reconciliation", "lines_add_up", "clicks", "critical", "lines = clicks + duplicates + quarantine", True, None, 0),
    ("clicks", "no_event_id_twice", "clicks", "critical", "no event id is accepted twice", True, 0, 0),
    ("clicks", "quarantined_share", "quarantined_clicks", "warning", "few lines are quarantined", True, 0.02, 0.004),
    ("clicks", "unknown_country_share", "clicks", "warning", "most countries are known", True, 0.1, 0.02),
    ("volume", "clicks", "clicks", "warning", "about as many clicks as on other days", True, 20000, 900),
    ("schema_drift", "no_new_fields", "clicks", "warning", "no field is new", True, None, 0),
    ("reconciliation", "urls_equal_countries", "clicks_by_url_hourly", "critical", "URLs = countries", False, None, 0),
    ("aggregates", "top_url_share", "clicks_by_url_hourly", "warning", "no URL has most clicks", False, 0.2, 0.02),
    ("layout", "url_same_buckets", "clicks_by_url_hourly", "critical", "same buckets", False, None, 0),
    ("load", "skew", "grouping_metrics", "warning", "instances count about alike", False, 1.4, 0.2),
)


@dataclass(frozen=True)
class Row:
    """One row of ``quality_results``, with a check that passed as its default."""

    run_id: str = "run-1"
    validated_at: datetime = datetime(2026, 3, 1, 6, 5, tzinfo=UTC)
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
    actor: str | None = None
    duration_seconds: float | None = 1.5
    link: str | None = "data_docs/run-1/log_hours.html"


def event(hour: str, outcome: str, why: str = "", actor: str | None = None, **values: Any) -> Row:
    """What became of a click hour."""
    given: dict[str, Any] = {
        "suite": "publication", "partition": hour, "source": None, "hour": hour, "check_id": outcome,
        "checked_table": "clicks_by_url_hourly", "expectation": "", "severity": "info", "outcome": outcome,
        "observed": why, "observed_value": None, "lowest": None, "highest": None, "advice": None, "actor": actor,
        "duration_seconds": None, "link": None,
    }  # fmt: skip
    return Row(**given | values)


def append(lake: Path, rows: Iterable[Row]) -> None:
    """One commit to ``quality_results`` of this lake, as a job makes it."""
    values = [asdict(row) for row in rows]
    schema = pa.schema([(column.name, _ARROW[column.type]) for column in QUALITY_RESULTS.columns])
    write_deltalake(lake / QUALITY_RESULTS.name, pa.Table.from_pylist(values, schema=schema), mode="append")


def validated_hours(
    start: Hour, hours: int, sources: Sequence[str] = ("web", "shop"), seed: int = 1
) -> list[list[Row]]:
    """What so many runs leave, one list each: mostly good hours, some that warn, a few that fail and are held."""
    chance = random.Random(seed)
    return [_validated(start.plus(number), sources, chance) for number in range(hours)]


def _validated(hour: Hour, sources: Sequence[str], chance: random.Random) -> list[Row]:
    at = hour.end + timedelta(minutes=chance.randint(4, 20))
    run_id = f"{at:%Y%m%dT%H%M%S}-{chance.getrandbits(32):08x}"
    rows, reasons = [], []
    for suite, check, table, severity, holds, of_source, mean, deviation in CHECKS:
        for source in sources if of_source else (None,):
            partition = f"count_by_url {hour}" if suite == "load" else f"{source} {hour}" if source else str(hour)
            fails = chance.random() < (0.004 if severity == "critical" else 0.02)
            value = None if mean is None else mean + (chance.gauss(0, 1) + (8 if fails else 0)) * deviation
            if mean == 0:
                value = float(fails * chance.randint(1, 40))
            if fails and severity == "critical":
                reasons.append(f"{suite}: {partition}: expected {holds}")
            rows.append(
                Row(
                    run_id, at, suite, partition, source, str(hour), table, check, holds, severity,
                    "fail" if fails else "pass",
                    f"{check} = {value:.4g}" if value is not None else "found 12 where 12 were expected",
                    value,
                    None if mean is None else max(0, mean - 4 * deviation),
                    None if mean is None else mean + 4 * deviation,
                    f"Why {check} is looked at. Run the log hour again.",
                    [f"https://example.com/{number}" for number in range(3)] if fails else [],
                    None, 2.0, f"data_docs/{run_id}/log_hours.html",
                )
            )  # fmt: skip
    outcome = ("held", "; ".join(reasons)) if reasons else ("published", "all critical checks passed")
    return [*rows, event(str(hour), *outcome, run_id=run_id, validated_at=at + timedelta(seconds=30))]

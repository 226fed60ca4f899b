"""Old against new: what is published, and what a staged backfill would publish in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.backfills import COMPARED, Backfill
from include.holds import ClickHourState, described_failure, of_newest_runs
from include.hours import Hour, LogHour, click_hour_of
from include.sources import choose_sources
from include.tables import AGGREGATES, VISIBILITY, Table
from spark_jobs.aggregate.small_keys import publishable
from spark_jobs.backfill.record import say
from spark_jobs.engine.steps import in_parallel, step
from spark_jobs.hours.held_hours import click_hour_states, results_of
from spark_jobs.hours.touched_hours import touched_click_hours
from spark_jobs.lake.lake import Lake

MOST_CHANGES = 20
MOST_FAILED_CHECKS = 50
_COUNTED = ("click_count", "bot_click_count", "visitor_count")


@dataclass(frozen=True)
class HourChange:
    """The clicks of a click hour as published and as counted; both 0 where there are none."""

    hour: str
    old_clicks: int
    new_clicks: int


@dataclass(frozen=True)
class KeyChange:
    """The clicks of one key over all hours compared, as published and as counted."""

    key: str
    old_clicks: int
    new_clicks: int

    @property
    def difference(self) -> int:
        """New less old."""
        return self.new_clicks - self.old_clicks


@dataclass(frozen=True)
class TableChange:
    """What would change in one published table.

    ``rows_changed`` are its rows, an hour and key each, that are new, gone or have other counts, by click hour, without
    hours that stay as they are. ``largest`` are the keys whose clicks change most.
    """

    table: str
    key: str
    rows_changed: Mapping[str, int]
    largest: tuple[KeyChange, ...]


@dataclass(frozen=True)
class Comparison:
    """What a staged backfill would change; ``counts`` names the counts compared.

    ``hours`` are the click hours that would be published, in order; those that are ``held`` (with the failed checks),
    ``waiting`` (with what for) or ``dropped`` would not. ``failed`` are the newest checks that failed, critical ones
    first, of ``checks`` in all.
    """

    counts: str
    hours: tuple[HourChange, ...]
    tables: tuple[TableChange, ...]
    held: Mapping[str, str]
    waiting: Mapping[str, str]
    dropped: tuple[str, ...]
    checks: int
    critical: int
    warnings: int
    failed: tuple[str, ...]

    @property
    def changed_hours(self) -> list[str]:
        """The click hours in which any table would change."""
        return sorted({hour for table in self.tables for hour in table.rows_changed})

    @property
    def old_clicks(self) -> int:
        """Published in the hours that would be replaced."""
        return sum(hour.old_clicks for hour in self.hours)

    @property
    def new_clicks(self) -> int:
        """Counted in them."""
        return sum(hour.new_clicks for hour in self.hours)


def staged_states(lake: Lake, backfill: Backfill) -> dict[Hour, ClickHourState]:
    """The states of all click hours that the backfill's log hours touch. Hold the lake's lock."""
    sources = choose_sources(lake.settings, backfill.source)
    touched = touched_click_hours(lake, sources, backfill.log_hours, allow_absent=True)
    return click_hour_states(lake, touched.log_hours_of, backfill)


def name_of_counts(states: Mapping[Hour, ClickHourState]) -> str:
    """A name of these very counts: another one once one of the hours is counted, or one of its log hours ingested."""
    return sha256("\n".join(f"{hour} {states[hour].counts}" for hour in sorted(states)).encode()).hexdigest()[:16]


def compare(lake: Lake, backfill: Backfill) -> tuple[Backfill, Comparison]:
    """Compare, and put on record what was compared."""
    with lake.locked():
        states = staged_states(lake, backfill)
        hours = [hour for hour, state in states.items() if state.is_good]
        changes = in_parallel(
            lake.spark, *(partial(_changes, lake, *tables, hours=hours) for tables in AGGREGATES.items())
        )
        backfill = say(lake, backfill, COMPARED, counts=name_of_counts(states))
    log_hours = {LogHour(backfill.source, hour) for hour in backfill.log_hours}
    newest = of_newest_runs(results_of(lake, set(states), log_hours))
    failed = [row for row in newest if row["outcome"] == "fail"]
    critical = [row for row in failed if row["severity"] == "critical"]
    warnings = [row for row in failed if row["severity"] == "warning"]
    by_hour = changes[0][1]
    return backfill, Comparison(
        counts=name_of_counts(states),
        hours=tuple(by_hour.get(hour, HourChange(str(hour), 0, 0)) for hour in hours),
        tables=tuple(change for change, _ in changes),
        held={str(hour): state.reasons for hour, state in states.items() if state.is_held},
        waiting={str(hour): state.waits_for for hour, state in states.items() if state.waits_for},
        dropped=tuple(str(hour) for hour, state in states.items() if state.is_dropped),
        checks=len(newest),
        critical=len(critical),
        warnings=len(warnings),
        failed=tuple(
            f"{row['severity']}: {described_failure(row)}" for row in [*critical, *warnings][:MOST_FAILED_CHECKS]
        ),
    )


def _changes(
    lake: Lake, computed: Table, published: Table, hours: Sequence[Hour]
) -> tuple[TableChange, dict[Hour, HourChange]]:
    key = published.key[-1]
    new = lake.read_click_hours(computed, hours)
    if smallest := lake.settings.pipeline.publication.smallest_visitors:
        new = publishable(new, key, smallest, lake.read_click_hours(VISIBILITY[published], hours))
    both = _both(lake.read_click_hours(published, hours), new, published.key)
    sums = (F.sum("old_click_count").alias("old"), F.sum("new_click_count").alias("new"))
    is_changed = ~F.expr(" AND ".join(f"old_{name} <=> new_{name}" for name in _COUNTED))
    with step(lake.spark, f"compare {published.name}"):
        by_hour = both.groupBy("click_date", "click_hour").agg(*sums, F.count_if(is_changed).alias("changed")).collect()
        largest = (
            both.groupBy(key)
            .agg(*sums)
            .where("old <> new")
            .orderBy(F.desc(F.abs(F.col("new") - F.col("old"))), key)
            .limit(MOST_CHANGES)
            .collect()
        )
    rows = {click_hour_of(row): row for row in by_hour}
    changed = {str(hour): row["changed"] for hour, row in rows.items() if row["changed"]}
    hour_changes = {hour: HourChange(str(hour), row["old"], row["new"]) for hour, row in rows.items()}
    keys = tuple(KeyChange(row[key], row["old"], row["new"]) for row in largest)
    return TableChange(published.name, key, dict(sorted(changed.items())), keys), hour_changes


def _both(old: DataFrame, new: DataFrame, key: Sequence[str]) -> DataFrame:
    """A row for each hour and key of either, with the counts of both, 0 where there is none."""
    named = [
        rows.select(*key, *(F.col(name).alias(f"{prefix}_{name}") for name in _COUNTED))
        for prefix, rows in (("old", old), ("new", new))
    ]
    return named[0].join(named[1], list(key), "full_outer").fillna(0)

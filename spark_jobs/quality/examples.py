"""Examples of the rows behind what failed, fetched for that alone and in one query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from expectations.judge import Outcome
from include.buckets import Layout
from include.log_hours import Hour
from include.sources import Source
from include.tables import CLICKS, QUARANTINED_CLICKS, Table
from spark_jobs.engine.steps import step
from spark_jobs.lake.lake import Lake, click_hours_predicate, log_hours_predicate
from spark_jobs.quality.broken_rows import rows_that_break, rows_with_keys_twice, some_of_each
from spark_jobs.quality.facts import measuring
from spark_jobs.quality.row_rules import (
    click_rules,
    click_time_rules,
    configured_rules,
    count_rules,
    quarantine_rules,
)

#: Examples are fetched for so many failures, the critical ones first; where more failed, a few say what is wrong.
MOST_FAILURES = 200

_OF_CLICKS = ("event_id", "clicked_at", "click_hour", "url", "country_code", "status", "referrer", "user_agent")
#: Not the text, which may hold a client's address and would be kept for as long as the results: it is in the table.
_OF_QUARANTINE = ("reason", "file", "line")

#: Table, rule and partition.
Place = tuple[str, str, str]


def find_examples(
    lake: Lake, sources: Sequence[Source], outcomes: Sequence[Outcome], layouts: Mapping[str, tuple[Table, Layout]]
) -> dict[Place, list[str]]:
    """At most 20 rows, as text, for each failure that single rows are to blame for."""
    blamed = sorted(
        (outcome for outcome in outcomes if outcome.has_failed and outcome.check.rows),
        key=lambda outcome: not outcome.is_critical_failure,
    )[:MOST_FAILURES]
    if not blamed:
        return {}
    frames = [frame for table in _tables(layouts) for frame in _of_table(lake, table, sources, blamed, layouts)]
    with measuring(lake.spark), step(lake.spark, "find examples"):
        rows = reduce(DataFrame.unionAll, frames).collect()
    return {(row["table"], row["rule"], row["partition"]): list(row["examples"]) for row in rows}


def place_of(outcome: Outcome) -> Place:
    """Where the examples of an outcome are found."""
    return outcome.check.table, str(outcome.check.rows), outcome.partition


def _tables(layouts: Mapping[str, tuple[Table, Layout]]) -> list[Table]:
    return [CLICKS, QUARANTINED_CLICKS, *(table for table, _ in layouts.values())]


def _of_table(
    lake: Lake,
    table: Table,
    sources: Sequence[Source],
    blamed: Sequence[Outcome],
    layouts: Mapping[str, tuple[Table, Layout]],
) -> list[DataFrame]:
    """The examples of one table; none if it is not to blame."""
    of_table = [outcome for outcome in blamed if outcome.check.table == table.name]
    wanted: dict[str, list[str]] = {}
    for outcome in of_table:
        wanted.setdefault(str(outcome.check.rows), []).append(outcome.partition)
    if not wanted:
        return []
    if table in (CLICKS, QUARANTINED_CLICKS):
        broken = _of_log_hours(lake, table, sources, of_table, set(wanted))
    else:
        (layout,) = (layout for counted, layout in layouts.values() if counted == table)
        broken = _of_click_hours(lake, table, layout.buckets or lake.buckets(table), of_table, set(wanted))
    named = F.lit(table.name).alias("table")
    return [some_of_each(broken, wanted).select(named, "rule", "partition", "examples")]


def _of_log_hours(
    lake: Lake, table: Table, sources: Sequence[Source], blamed: Sequence[Outcome], wanted: set[str]
) -> DataFrame:
    partition = F.concat_ws(" ", "source", _hour("log_date", "log_hour"))
    hours = [(source, {Hour.parse(one.hour) for one in blamed if one.source == source.name}) for source in sources]
    rows = lake.read(table).where(_any_of(log_hours_predicate(source.name, those) for source, those in hours))
    if table == QUARANTINED_CLICKS:
        return rows_that_break(rows, _chosen(quarantine_rules(), wanted), partition, _OF_QUARANTINE)
    configured = (check for source in sources for check in source.all_checks(lake.settings.pipeline))
    rules = click_rules() | click_time_rules() | configured_rules(configured)
    frames = [rows_that_break(rows, _chosen(rules, wanted), partition, _OF_CLICKS)]
    if "duplicate_event_ids" in wanted:
        within_lateness = _any_of(
            log_hours_predicate(
                source.name, {hour.plus(-shift) for hour in those for shift in range(source.lateness_hours + 1)}
            )
            for source, those in hours
        )
        around = lake.read(table).where(within_lateness)
        frames.append(
            rows_with_keys_twice(around, "duplicate_event_ids", ["source", "event_id"], partition, _OF_CLICKS)
        )
    return reduce(DataFrame.unionAll, frames)


def _of_click_hours(lake: Lake, table: Table, buckets: int, blamed: Sequence[Outcome], wanted: set[str]) -> DataFrame:
    assert table.bucket_key is not None
    rows = lake.read(table).where(click_hours_predicate({Hour.parse(one.hour) for one in blamed}))
    partition = _hour("click_date", "click_hour")
    columns = (table.bucket_key, "click_count", "bot_click_count", "visitor_count", "bucket")
    frames = [rows_that_break(rows, _chosen(count_rules(table, buckets), wanted), partition, columns)]
    if "keys_twice" in wanted:
        key = ["click_date", "click_hour", table.bucket_key]
        frames.append(rows_with_keys_twice(rows, "keys_twice", key, partition, columns))
    return reduce(DataFrame.unionAll, frames)


def _chosen(rules: Mapping[str, Column], wanted: set[str]) -> dict[str, Column]:
    # A rule that nothing was wanted of costs a look at every row; with none at all there is nothing to explode.
    return {name: rule for name, rule in rules.items() if name in wanted} or {"": F.lit(False)}


def _any_of(predicates: Iterable[str]) -> str:
    return " OR ".join(f"({predicate})" for predicate in predicates)


def _hour(day: str, hour: str) -> Column:
    return F.concat(F.col(day).cast("string"), F.lit("T"), F.lpad(F.col(hour).cast("string"), 2, "0"))

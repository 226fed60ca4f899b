"""Examples of the rows behind what failed, fetched for that alone and in one query."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from expectations.checks import RowRule
from expectations.judge import Outcome
from include.buckets import Layout
from include.hours import Hour, click_hours_predicate
from include.sources import Source
from include.tables import CLICKS, QUARANTINED_CLICKS, Table
from spark_jobs.engine.steps import step
from spark_jobs.lake.data_files import has_log_hours, may_have_click_hours
from spark_jobs.lake.lake import Lake
from spark_jobs.quality.broken_rows import rows_shown, rows_with_same_key, some_of_each
from spark_jobs.quality.facts import measuring

#: Examples are fetched for so many failures, the critical ones first; where more failed, a few say what is wrong.
MOST_FAILURES = 200

_OF_CLICKS = ("event_id", "clicked_at", "click_hour", "url", "country_code", "status", "referrer", "user_agent")
#: Not the text, which may hold a client's address and would be kept for as long as the results: it is in the table.
_OF_QUARANTINE = ("reason", "file", "line")


def with_examples(
    lake: Lake, sources: Sequence[Source], outcomes: Sequence[Outcome], layouts: Mapping[str, tuple[Table, Layout]]
) -> list[Outcome]:
    """The outcomes, with at most 20 rows, as text, for each failure that single rows are to blame for."""
    blamed = sorted(
        (outcome for outcome in outcomes if outcome.has_failed and _rule(outcome)),
        key=lambda outcome: not outcome.is_critical_failure,
    )[:MOST_FAILURES]
    if not blamed:
        return list(outcomes)
    frames = [frame for table in _tables(layouts) for frame in _of_table(lake, table, sources, blamed, layouts)]
    with measuring(lake.spark), step(lake.spark, "find examples"):
        rows = reduce(DataFrame.unionAll, frames).collect()
    examples = {(row["table"], row["rule"], row["partition"]): tuple(row["examples"]) for row in rows}

    def completed(outcome: Outcome) -> Outcome:
        rule = _rule(outcome) if outcome.has_failed else None
        shown = examples.get((outcome.check.table, rule.name, outcome.partition)) if rule else None
        return replace(outcome, finding=replace(outcome.finding, examples=shown)) if shown else outcome

    return list(map(completed, outcomes))


def _rule(outcome: Outcome) -> RowRule | None:
    """The rule of which there are examples."""
    rule = outcome.check.rows
    return rule if rule is not None and (rule.shown or rule.same) else None


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
    rules: dict[str, RowRule] = {}
    wanted: dict[str, list[str]] = {}
    for outcome in of_table:
        if rule := _rule(outcome):
            rules[rule.name] = rule
            wanted.setdefault(rule.name, []).append(outcome.partition)
    if not wanted:
        return []
    if table in (CLICKS, QUARANTINED_CLICKS):
        broken = _of_log_hours(lake, table, sources, of_table, rules.values())
    else:
        broken = _of_click_hours(lake, table, of_table, rules.values())
    named = F.lit(table.name).alias("table")
    return [some_of_each(broken, wanted).select(named, "rule", "partition", "examples")]


def _of_log_hours(
    lake: Lake, table: Table, sources: Sequence[Source], blamed: Sequence[Outcome], rules: Collection[RowRule]
) -> DataFrame:
    partition = F.concat_ws(" ", "source", _hour("log_date", "log_hour"))
    hours = {
        source.name: {Hour.parse(outcome.hour) for outcome in blamed if outcome.source == source.name}
        for source in sources
    }
    rows = around = _of_hours(lake, table, hours)
    if any(rule.same for rule in rules):
        earlier = {source.name: _with_earlier(hours[source.name], source.lateness_hours) for source in sources}
        around = _of_hours(lake, table, earlier)
    return _shown_rows(rows, around, rules, partition, _OF_QUARANTINE if table == QUARANTINED_CLICKS else _OF_CLICKS)


def _with_earlier(hours: Collection[Hour], lateness: int) -> set[Hour]:
    return {hour.plus(-shift) for hour in hours for shift in range(lateness + 1)}


def _of_hours(lake: Lake, table: Table, hours: Mapping[str, Collection[Hour]]) -> DataFrame:
    """The rows of these log hours, by source."""
    return lake.read_files(table, *(has_log_hours(*of_source) for of_source in hours.items()), leave_out_lost=True)


def _of_click_hours(lake: Lake, table: Table, blamed: Sequence[Outcome], rules: Collection[RowRule]) -> DataFrame:
    assert table.bucket_key is not None
    hours = {Hour.parse(outcome.hour) for outcome in blamed}
    counts = lake.read_files(table, may_have_click_hours(table, hours), leave_out_lost=True)
    rows = counts.where(click_hours_predicate(hours))
    columns = (table.bucket_key, "click_count", "bot_click_count", "visitor_count", "bucket", "buckets")
    return _shown_rows(rows, rows, rules, _hour("click_date", "click_hour"), columns)


def _shown_rows(
    rows: DataFrame, around: DataFrame, rules: Collection[RowRule], partition: Column, columns: Sequence[str]
) -> DataFrame:
    """What each of the rules shows of the rows, or of those around them that have the same key."""
    alone = [rule for rule in rules if not rule.same]
    frames = [rows_shown(rows, alone, partition, columns)] if alone else []
    frames += [rows_with_same_key(around, rule, partition, columns) for rule in rules if rule.same]
    return reduce(DataFrame.unionAll, frames)


def _hour(day: str, hour: str) -> Column:
    return F.concat(F.col(day).cast("string"), F.lit("T"), F.lpad(F.col(hour).cast("string"), 2, "0"))

"""All that the checks look at, read for the given hours: from each table in one pass, and from Delta's log."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from expectations.checks import counted_rows
from expectations.facts import ACCOUNTING, GROUPINGS, Facts, as_facts
from expectations.suites import click_hour_checks, log_hour_checks
from include.buckets import Layout
from include.days import days_of, hours_of
from include.hours import Hour, HourRange, LogHour, click_hours_predicate, log_hours_predicate
from include.job_arguments import JobArguments
from include.sources import Source
from include.tables import (
    AGGREGATES,
    CLICKS,
    DUPLICATE_CLICKS,
    GROUPING_METRICS,
    QUARANTINED_CLICKS,
    VISIBILITY,
    Table,
    daily_table,
)
from spark_jobs.aggregate.days import hours_frame
from spark_jobs.aggregate.small_keys import publishable
from spark_jobs.engine.fact_frames import FactFrame, collected
from spark_jobs.engine.session import session_settings
from spark_jobs.engine.steps import step
from spark_jobs.hours.finalise import less_open, open_log_hours
from spark_jobs.hours.held_hours import published_at
from spark_jobs.hours.touched_hours import TouchedHours
from spark_jobs.lake.data_files import DataFile, has_days, has_log_hours, may_have_click_hours
from spark_jobs.lake.lake import Lake
from spark_jobs.quality import measures
from spark_jobs.quality.earlier_hours import accounting_history, click_history
from spark_jobs.quality.live_position import live_positions, live_tables

#: For queries that measure. Adaptive execution would run a Spark job for each of its shuffles, and there is
#: nothing to adapt to: their results are small. The checks report a file that is lost or cut short, in words.
_MEASURING = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.files.ignoreCorruptFiles": "true",
}


def measure(
    lake: Lake,
    sources: Sequence[Source],
    arguments: JobArguments,
    touched: TouchedHours,
    layouts: Mapping[str, tuple[Table, Layout]],
) -> Facts:
    """The facts for ``expectations.frames``, of these log hours and the click hours they own. Hold the lake's lock."""
    click_hours = touched.own
    published = published_at(lake, click_hours)
    clicks, files = _clicks(lake, sources, arguments.log_hours, click_hours)
    is_open = open_log_hours(lake, files)
    queries = {
        "clicks": _click_frames(lake, sources, arguments, click_hours, clicks, is_open),
        "counts": _count_frames(lake, click_hours, layouts, published),
    }
    with measuring(lake.spark), step(lake.spark, "measure quality"):
        measured = collected(lake.spark, queries)
        # Hashes are compared for all clicks. The ids themselves where these say that one comes again.
        if measured["duplicate_ids"].num_rows:
            ids = _ids_again(clicks, sources, arguments, is_open, by_hash=False)
            measured |= collected(lake.spark, {"ids": [("duplicate_ids", ids)]})
    return as_facts(
        {
            **measured,
            # After the tables: what has been read of them by then is said here.
            "live_positions": live_positions(lake, click_hours),
            "open_log_hours": _of_log_hours(LogHour(source, hour) for source in is_open for hour in is_open[source]),
            "unfinished": _of_log_hours(touched.unfinished),
            "accounting": [{name: account[name] for name in ACCOUNTING.column_names} for account in touched.accounts],
            "accounting_history": accounting_history(lake, arguments.log_hours, click_hours),
            "groupings": lake.read_table(
                GROUPING_METRICS,
                GROUPINGS.column_names,
                [("source", "=", arguments.source), ("log_hours", "=", str(arguments.log_hours))],
            ),
            "files": list(_file_facts(lake, sources, arguments.log_hours, click_hours, layouts)),
            "other_types": [
                {"column_name": column, "stored_type": stored}
                for column, stored in lake.columns_of_other_types(CLICKS).items()
            ],
            "publications": [
                {"click_date": hour.day, "click_hour": hour.hour, "published_micros": micros}
                for hour, micros in published.items()
            ],
        }
    )


def _of_log_hours(log_hours: Iterable[LogHour]) -> list[dict[str, Any]]:
    return [{"source": of.source, "log_date": of.hour.day, "log_hour": of.hour.hour} for of in log_hours]


def _clicks(
    lake: Lake, sources: Sequence[Source], log_hours: HourRange, click_hours: Sequence[Hour]
) -> tuple[DataFrame, list[DataFile]]:
    """Clicks of these hours, and of the log hours that may have duplicates of them; and their files, but lost ones."""
    choices = [has_log_hours(source.name, _with_earlier(sources, log_hours)) for source in sources]
    choices.append(may_have_click_hours(CLICKS, click_hours))
    return lake.read_with_files(CLICKS, *choices, leave_out_lost=True)


def _with_earlier(sources: Iterable[Source], log_hours: HourRange) -> HourRange:
    """The log hours, and those before them whose clicks may come again in them."""
    return HourRange(log_hours.start.plus(-max(source.lateness_hours for source in sources)), log_hours.end)


def _click_frames(
    lake: Lake,
    sources: Sequence[Source],
    arguments: JobArguments,
    click_hours: Sequence[Hour],
    clicks: DataFrame,
    is_open: Mapping[str, Collection[Hour]],
) -> Iterator[FactFrame]:
    """Of what was ingested, by subject."""
    pipeline = lake.settings.pipeline
    checks = [check for source in sources for check in log_hour_checks(pipeline, source)] + click_hour_checks(pipeline)
    log_hours = list(arguments.log_hours)
    of_log_hours = " OR ".join(f"({log_hours_predicate(source.name, log_hours)})" for source in sources)
    # The counts of a click hour are of all sources and log hours, so its clicks are measured whole.
    measured = clicks.where(f"({of_log_hours}) OR {click_hours_predicate(click_hours)}")
    chosen = [has_log_hours(source.name, log_hours) for source in sources]
    yield "clicks", measures.click_facts(measured, counted_rows(checks, CLICKS.name))
    yield "quarantined", measures.quarantine_facts(_whole_files(lake, QUARANTINED_CLICKS, *chosen))
    yield "duplicates", measures.duplicate_facts(_whole_files(lake, DUPLICATE_CLICKS, *chosen))
    yield "duplicate_ids", _ids_again(clicks, sources, arguments, is_open, by_hash=True)
    yield "click_history", click_history(lake, click_hours)


def _count_frames(
    lake: Lake,
    click_hours: Sequence[Hour],
    layouts: Mapping[str, tuple[Table, Layout]],
    published: Collection[Hour],
) -> Iterator[FactFrame]:
    """Of what was counted and published, by subject; each key's by itself."""
    pipeline = lake.settings.pipeline
    checks, smallest = click_hour_checks(pipeline), pipeline.publication.smallest_visitors
    for key, (table, _) in layouts.items():
        column = str(table.bucket_key)
        counts = _whole_files(lake, table, may_have_click_hours(table, click_hours))
        yield "counts", _of_key(key, measures.count_facts(counts, column, counted_rows(checks, table.name)))
        if table in AGGREGATES and published:
            rows = _whole_files(lake, AGGREGATES[table], may_have_click_hours(AGGREGATES[table], published))
            yield "published", _of_key(key, measures.published_facts(rows, column))
            if smallest:
                known = lake.read_click_hours(VISIBILITY[AGGREGATES[table]], click_hours)
                expected = publishable(counts, column, smallest, known)
                yield "publishable", _of_key(key, measures.published_facts(expected, column))
    if days := days_of(pipeline.time_zones, click_hours):
        hours = hours_frame(lake, {day: {} for day in days})
        for key, (table, _) in layouts.items():
            of_hours = _whole_files(lake, table, may_have_click_hours(table, hours_of(days)))
            of_days = _whole_files(lake, daily_table(table), has_days(days))
            yield "days", _of_key(key, measures.day_facts(of_hours, of_days, hours, table.key[-1]))
    for key, table in live_tables(lake).items():
        live = _whole_files(lake, table, may_have_click_hours(table, click_hours))
        yield "live_counts", _of_key(key, measures.live_facts(live))


def _of_key(key: str, facts: DataFrame) -> DataFrame:
    return facts.select(F.lit(key).alias("key"), "*")


def _ids_again(
    clicks: DataFrame,
    sources: Sequence[Source],
    arguments: JobArguments,
    is_open: Mapping[str, Collection[Hour]],
    *,
    by_hash: bool,
) -> DataFrame:
    """Of ids that were accepted more than once within the sources' lateness."""
    lateness = max(source.lateness_hours for source in sources)
    log_hours = list(_with_earlier(sources, arguments.log_hours))
    with_earlier = " OR ".join(f"({log_hours_predicate(source.name, log_hours)})" for source in sources)
    accepted = less_open(clicks, is_open).where(with_earlier)
    facts = measures.duplicate_id_facts(accepted, lateness, by_hash=by_hash)
    return facts.where(F.col("hour_number") >= arguments.log_hours.start.number)


def _whole_files(lake: Lake, table: Table, *choices: pc.Expression) -> DataFrame:
    """The rows of the files chosen, but for lost ones: ``_file_facts`` reports these, in words."""
    return lake.read_files(table, *choices, leave_out_lost=True)


def _file_facts(
    lake: Lake,
    sources: Sequence[Source],
    log_hours: HourRange,
    click_hours: Sequence[Hour],
    layouts: Mapping[str, tuple[Table, Layout]],
) -> Iterator[dict[str, Any]]:
    """One fact per table and partition: how many files it has, and which of them are lost."""
    of_log_hours = [has_log_hours(source.name, log_hours) for source in sources]
    chosen: list[tuple[Table, list[pc.Expression]]] = [
        *((table, of_log_hours) for table in (CLICKS, QUARANTINED_CLICKS)),
        *((table, [may_have_click_hours(table, click_hours)]) for table, _ in layouts.values()),
    ]
    for table, choices in chosen:
        partitions: dict[tuple[Any, ...], list[DataFile]] = {}
        for file in lake.data_files(table, *choices):
            partitions.setdefault(tuple(file.partition.values()), []).append(file)
        for files in partitions.values():
            lost = [file.path.name for file in files if not file.is_whole]
            yield {"table_name": table.name, **files[0].partition, "files": len(files), "lost": lost}


def measuring(spark: SparkSession) -> AbstractContextManager[None]:
    """Settings for queries that look for faults, and give small results."""
    return session_settings(spark, _MEASURING)

"""All that the checks look at, read for the given hours: from each table in one pass, and from Delta's log."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from expectations.checks import counted_rows
from expectations.facts import (
    ACCOUNTING,
    ACCOUNTING_HISTORY,
    GROUPINGS,
    LIVE_PROGRESS,
    MICRO_BATCHES,
    Facts,
    as_facts,
)
from expectations.suites import click_hour_checks, log_hour_checks
from include.buckets import Layout
from include.counting import key_label, live_count_table
from include.days import days_of, hours_of, hours_of_two_days
from include.hours import Hour, HourRange, LogHour, click_hours_predicate, log_hours_predicate
from include.job_arguments import JobArguments
from include.settings import PipelineSettings
from include.sources import Source
from include.stored_rows import Filters
from include.tables import (
    AGGREGATES,
    CLICKS,
    CLICKS_BY_COUNTRY_HOURLY,
    DUPLICATE_CLICKS,
    GROUPING_METRICS,
    INGEST_ACCOUNTING,
    QUARANTINED_CLICKS,
    STREAM_BATCHES,
    STREAM_PROGRESS,
    VISIBILITY,
    Table,
    daily_table,
)
from include.usual_range import same_hour_before
from spark_jobs.aggregate.days import hours_frame
from spark_jobs.aggregate.small_keys import publishable
from spark_jobs.engine.fact_frames import FactFrame, collected
from spark_jobs.engine.session import session_settings
from spark_jobs.engine.steps import in_parallel, step
from spark_jobs.hours.finalise import open_log_hours
from spark_jobs.hours.held_hours import published_at
from spark_jobs.hours.touched_hours import TouchedHours
from spark_jobs.ids.repeated_ids import ArrivalFile, count_repeated
from spark_jobs.lake.data_files import DataFile, has_days, has_log_hours, may_have_click_hours
from spark_jobs.lake.lake import Lake
from spark_jobs.quality import measures
from spark_jobs.quality.many_urls import judged_log_hours, sampling_interval, url_facts

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
    streamed: Collection[str],
    arguments: JobArguments,
    touched: TouchedHours,
    layouts: Mapping[str, tuple[Table, Layout]],
) -> Facts:
    """The facts for ``expectations.frames``, of these log hours and the click hours they own. Hold the lake's lock.

    ``streamed`` are the names of all sources that are. What is measured is without files that are lost or cut short:
    ``files`` has these.
    """
    pipeline, click_hours = lake.settings.pipeline, touched.own
    published = published_at(lake, click_hours)
    choices = [has_log_hours(source.name, arguments.log_hours) for source in sources]
    choices.append(may_have_click_hours(CLICKS, click_hours))
    clicks, files = lake.read_with_files(CLICKS, *choices, leave_out_lost=True)
    files_of_ids = _files_of_ids(lake, sources, arguments.log_hours)
    is_open = open_log_hours(lake, streamed, [*files, *files_of_ids])
    judged = judged_log_hours(touched.accounts, pipeline)
    every = sampling_interval(judged)
    queries = {
        "clicks": _click_frames(lake, sources, arguments.log_hours, click_hours, clicks, every),
        "counts": _count_frames(lake, click_hours, layouts, published, streamed),
    }
    with measuring(lake.spark), step(lake.spark, "measure quality"):
        measured, duplicate_ids = in_parallel(
            lake.spark,
            partial(collected, lake.spark, queries),
            lambda: list(_duplicate_ids(lake, sources, arguments.log_hours, files_of_ids, is_open)),
        )
        urls = url_facts(
            measured.pop("urls"), judged, sources, pipeline, partial(_some_urls, lake.spark, clicks, every)
        )
    return as_facts(
        {
            **measured,
            "urls": urls,
            "duplicate_ids": duplicate_ids,
            "open_log_hours": _of_log_hours(LogHour(source, hour) for source in is_open for hour in is_open[source]),
            "unfinished": _of_log_hours(touched.unfinished),
            # After the tables: what has been read of them by then is said here.
            **_stored_facts(lake, streamed, arguments, click_hours),
            "files": list(_file_facts(lake, sources, arguments.log_hours, click_hours, layouts)),
            "other_types": [
                {"column_name": column, "stored_type": stored}
                for column, stored in lake.columns_of_other_types(CLICKS).items()
            ],
            "accounting": [{name: account[name] for name in ACCOUNTING.column_names} for account in touched.accounts],
            "publications": [
                {"click_date": hour.day, "click_hour": hour.hour, "published_micros": micros}
                for hour, micros in published.items()
            ],
        }
    )


def _files_of_ids(lake: Lake, sources: Iterable[Source], log_hours: HourRange) -> list[DataFile]:
    """Those of the sources' clicks of these log hours, and of those before that may have the same ids."""
    start, end = log_hours.start, log_hours.end
    choices = (has_log_hours(of.name, HourRange(start.plus(-of.lateness_hours), end)) for of in sources)
    return lake.data_files(CLICKS, *choices)


def _duplicate_ids(
    lake: Lake,
    sources: Iterable[Source],
    log_hours: HourRange,
    files: Iterable[DataFile],
    is_open: Mapping[str, Collection[Hour]],
) -> Iterator[dict[str, Any]]:
    """Facts on ids that are in ``clicks`` again, whatever an ingest has decided; ``files`` are of ``_files_of_ids``."""
    closed = [file for file in files if file.log_hour not in is_open.get(file.partition["source"], ())]
    for source in sources:
        checked = [ArrivalFile.checked(file, log_hours) for file in closed if file.partition["source"] == source.name]
        with lake.scratch_folder("event ids") as folder, step(lake.spark, "event ids"):
            counts = count_repeated(lake.spark, checked, log_hours, source.lateness_hours, folder)
        for hour, number in counts.items():
            yield {"source": source.name, "hour_number": hour, "duplicate_event_ids": number}


def _some_urls(spark: SparkSession, clicks: DataFrame, every: int, log_hours: Collection[LogHour]) -> pa.Table:
    rows = clicks.where(" OR ".join(f"({log_hours_predicate(of.source, [of.hour])})" for of in log_hours))
    return collected(spark, {"URLs": [("some_urls", measures.some_urls(rows, every))]})["some_urls"]


def _of_log_hours(log_hours: Iterable[LogHour]) -> list[dict[str, Any]]:
    return [log_hour.row for log_hour in log_hours]


def _of_sources(sources: Iterable[Source], log_hours: HourRange) -> str:
    """The condition of rows of these log hours of the sources."""
    return " OR ".join(f"({log_hours_predicate(source.name, list(log_hours))})" for source in sources)


def _click_frames(
    lake: Lake,
    sources: Sequence[Source],
    log_hours: HourRange,
    click_hours: Sequence[Hour],
    clicks: DataFrame,
    every: int,
) -> Iterator[FactFrame]:
    """Of what was ingested, by subject; the clicks of the hours before too, as the counts have them."""
    pipeline = lake.settings.pipeline
    checks = [check for source in sources for check in log_hour_checks(pipeline, source)] + click_hour_checks(pipeline)
    # The counts of a click hour are of all sources and log hours, so its clicks are measured whole.
    of_log_hours = _of_sources(sources, log_hours)
    measured = clicks.where(f"({of_log_hours}) OR {click_hours_predicate(click_hours)}")
    # A range of hours is read once, however much the days before its hours overlap.
    compared = {other for hour in click_hours for other in (hour, *same_hour_before(hour, pipeline.volume.days))}
    chosen = [has_log_hours(source.name, log_hours) for source in sources]
    quarantined = lake.read_files(QUARANTINED_CLICKS, *chosen, leave_out_lost=True)
    duplicates = lake.read_files(DUPLICATE_CLICKS, *chosen, leave_out_lost=True)
    counts = lake.read_files(
        CLICKS_BY_COUNTRY_HOURLY, may_have_click_hours(CLICKS_BY_COUNTRY_HOURLY, compared), leave_out_lost=True
    )
    yield "clicks", measures.click_facts(measured, counted_rows(checks, CLICKS.name))
    yield "urls", measures.url_facts(clicks.where(of_log_hours), every)
    yield "quarantined", measures.quarantine_facts(quarantined)
    yield "duplicates", measures.duplicate_facts(duplicates)
    yield "click_history", measures.click_history_facts(counts)


def _count_frames(
    lake: Lake,
    click_hours: Sequence[Hour],
    layouts: Mapping[str, tuple[Table, Layout]],
    published: Collection[Hour],
    streamed: Collection[str],
) -> Iterator[FactFrame]:
    """Of what was counted and published, by subject; each key's by itself."""
    pipeline = lake.settings.pipeline
    checks, smallest = click_hour_checks(pipeline), pipeline.publication.smallest_visitors
    with_quarters = bool(hours_of_two_days(pipeline.time_zones))

    def rows_of(table: Table, hours: Collection[Hour]) -> DataFrame:
        return lake.read_files(table, may_have_click_hours(table, hours), leave_out_lost=True)

    for key, (table, _) in layouts.items():
        column = str(table.bucket_key)
        counts = rows_of(table, click_hours)
        compared = {}
        if table in AGGREGATES and published:
            compared["published"] = rows_of(AGGREGATES[table], published)
            if smallest:
                known = lake.read_click_hours(VISIBILITY[AGGREGATES[table]], click_hours)
                compared["publishable"] = publishable(counts, column, smallest, known)
        rules = counted_rows(checks, table.name)
        yield "counts", _of_key(key, measures.count_facts(counts, column, rules, with_quarters=with_quarters))
        for subject, rows in compared.items():
            yield subject, _of_key(key, measures.published_facts(rows, column, with_quarters=with_quarters))
    if days := days_of(pipeline.time_zones, click_hours):
        hours = hours_frame(lake, {day: {} for day in days})
        for key, (table, _) in layouts.items():
            of_hours = rows_of(table, hours_of(days))
            of_days = lake.read_files(daily_table(table), has_days(days), leave_out_lost=True)
            yield "days", _of_key(key, measures.day_facts(of_hours, of_days, hours, table.key[-1]))
    for counted in pipeline.counts if streamed else ():
        live = rows_of(live_count_table(counted), click_hours)
        yield "live_counts", _of_key(key_label(counted), measures.live_facts(live))


def _of_key(key: str, facts: DataFrame) -> DataFrame:
    return facts.select(F.lit(key).alias("key"), "*")


def _stored_facts(
    lake: Lake, streamed: Collection[str], arguments: JobArguments, click_hours: Sequence[Hour]
) -> dict[str, pa.Table]:
    """Of few rows or columns, read without Spark."""
    history = _history_filters(lake.settings.pipeline, arguments.log_hours, click_hours)
    of_run = [("source", "=", arguments.source), ("log_hours", "=", str(arguments.log_hours))]
    return {
        **live_progress(lake, streamed, click_hours),
        # By delta-rs, each row being a file of its own: see docs/performance.md.
        "accounting_history": pa.concat_tables(
            lake.read_table(INGEST_ACCOUNTING, ACCOUNTING_HISTORY.column_names, choice) for choice in history
        ),
        "groupings": lake.read_table(GROUPING_METRICS, GROUPINGS.column_names, of_run),
    }


def live_progress(lake: Lake, streamed: Collection[str], click_hours: Collection[Hour]) -> dict[str, pa.Table]:
    """How far the live counts of streamed sources have got: micro-batches that count live, and that write clicks."""
    if not click_hours or not streamed:
        return {}
    first, names = min(click_hours), sorted(streamed)
    live = [("source", "in", names), ("query", "in", list(lake.settings.pipeline.counts))]
    has_begun, has_passed = [*live, ("batch_id", "=", 0)], [*live, ("watermark", ">=", first.end)]
    # A clock may be ahead, but no day.
    around = [("source", "in", names), ("log_date", ">=", first.plus(-24).day)]
    progress = lake.open_table(STREAM_PROGRESS, LIVE_PROGRESS.column_names, [has_begun, has_passed])
    return {
        "live_progress": progress.read_all(),
        "micro_batches": lake.read_table(STREAM_BATCHES, MICRO_BATCHES.column_names, around),
    }


def _history_filters(
    settings: PipelineSettings, log_hours: HourRange, click_hours: Iterable[Hour]
) -> tuple[Filters, Filters]:
    """Let accounts through of these hours, and at least of those that they are compared with.

    Of all sources, as a click hour is.
    """
    volume, drift = settings.volume, settings.schema_drift
    judged = {*log_hours, *click_hours}
    whole_days = {hour.plus(-shift).day for hour in log_hours for shift in range(drift.hours + 1)}
    days = {
        compared.day for hour in judged for compared in (hour, *same_hour_before(hour, max(volume.days, drift.days)))
    }
    same_hours = [("log_date", "in", sorted(days - whole_days)), ("log_hour", "in", sorted({h.hour for h in judged}))]
    return [("log_date", "in", sorted(whole_days))], same_hours


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

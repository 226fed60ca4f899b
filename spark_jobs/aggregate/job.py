"""The clicks of every touched click hour counted again, by every key, from one read of the clicks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.counting import CountKey, count_table
from include.days import hours_of_two_days
from include.job_arguments import JobArguments
from include.settings import Settings
from include.sources import choose_sources
from spark_jobs.aggregate.co_partitioning import co_partitioned_tables, require_co_partitioned
from spark_jobs.aggregate.count import complete_counts, count_per_instance
from spark_jobs.aggregate.days import count_days, described_lacking
from spark_jobs.aggregate.groupings import FieldsGrouping, FifoGrouping, Grouping, grouping_of
from spark_jobs.engine.session import files_kept_whole
from spark_jobs.engine.steps import in_parallel
from spark_jobs.hours.finalise import final_clicks
from spark_jobs.hours.touched_hours import touched_click_hours
from spark_jobs.lake.data_files import may_have_click_hours
from spark_jobs.lake.lake import Lake

#: Into so many partitions, at most, counts are put by click hour before they are written.
MOST_PARTITIONS = 256

#: Gives what the instances of a key's grouping count, to be computed within its context: whoever observes it.
CountObserver = Callable[[DataFrame, CountKey, Grouping], AbstractContextManager[DataFrame]]


def _unobserved(parts: DataFrame, key: CountKey, grouping: Grouping) -> AbstractContextManager[DataFrame]:
    return nullcontext(parts)


def aggregate(
    spark: SparkSession, settings: Settings, arguments: JobArguments, observed: CountObserver = _unobserved
) -> list[str]:
    """Count the touched click hours again; returns a few lines on what was done.

    ``spark_jobs.grouping.load`` counts too, and measures the load of the instances meanwhile.

    Raises:
        UsageError: if a configured grouping cannot be used on clicks.
        ClickmillError: if a log hour has not been ingested.
        QualityError: if the aggregate tables are not co-partitioned.
    """
    lake = Lake(spark, settings)
    with lake.locked():
        require_co_partitioned(lake, co_partitioned_tables(settings))
        touched = touched_click_hours(lake, choose_sources(settings, arguments.source), arguments.log_hours)
        hours = touched.own
        clicks = final_clicks(lake, hours)
        buckets = {key: lake.buckets(count_table(key)) for key in settings.pipeline.counts}
        groupings = {
            key: grouping_of(configured, key, buckets[key]) for key, configured in settings.pipeline.counts.items()
        }
        for grouping in groupings.values():
            grouping.require_columns(clicks)
        by_quarters = hours_of_two_days(settings.pipeline.time_zones) & {hour.hour for hour in hours}
        has_fifo = any(isinstance(grouping, FifoGrouping) for grouping in groupings.values())

        def count(key: CountKey, grouping: Grouping) -> None:
            with observed(count_per_instance(clicks, key, grouping, by_quarters), key, grouping) as parts:
                rows = _as_stored(parts, key, grouping, FieldsGrouping(buckets[key], (key,)), len(hours))
                table = count_table(key)
                lake.replace(table, rows, may_have_click_hours(table, hours))

        with files_kept_whole(spark) if has_fifo else nullcontext():
            in_parallel(spark, *(partial(count, *operator) for operator in groupings.items()))
        lacking = count_days(lake, hours)
    listed = f"{hours[0]} to {hours[-1]}" if hours else "none"
    return [
        f"log hours {arguments.log_hours}: {len(hours)} click hours counted per {', '.join(groupings)} ({listed})",
        *touched.described_left(),
        *described_lacking(lacking),
    ]


def _as_stored(
    parts: DataFrame, key: CountKey, grouping: Grouping, stored: FieldsGrouping, click_hours: int
) -> DataFrame:
    """The rows of one consumer's table from what its instances counted; few files, as a click hour is in one task."""
    constants = stored.placement() | {"counted_at": F.lit(datetime.now(UTC))}
    # A hint, not a repartition: Spark writes small partitions together, and a large one by several tasks.
    partitions = min(max(click_hours, 1), MOST_PARTITIONS)
    counts = complete_counts(parts, key, grouping).withColumns(constants)
    return counts.hint("rebalance", partitions, "click_date", "click_hour")

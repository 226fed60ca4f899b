"""Count clicks per URL and per country, for every click hour that the given log hours touch.

A late click changes its click hour's counts wherever it landed; so the click hours are found from the accounting, and
each is counted anew from all its clicks. Replaces exactly these click hours.
"""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from include.job_arguments import JobArguments, exit_with
from include.settings import Settings
from include.sources import choose_sources
from include.tables import AGGREGATES, CLICKS
from spark_jobs.io import Lake, click_hours_predicate
from spark_jobs.shell import run_from_shell
from spark_jobs.touched_hours import touched_click_hours
from spark_jobs.transforms.count_clicks import count_clicks_by
from spark_jobs.transforms.groupings import FieldsGrouping


def run(spark: SparkSession, settings: Settings, arguments: JobArguments) -> list[str]:
    """Count the touched click hours anew; returns a few lines on what was done.

    Raises:
        ClickmillError: if a log hour has not been ingested.
    """
    lake = Lake(spark, settings)
    with lake.locked():
        touched = touched_click_hours(lake, choose_sources(settings, arguments.source), arguments.log_hours)
        hours = touched.own
        clicks = lake.read_click_hours(CLICKS, hours).select(
            "click_date", "click_hour", "url", "country_code", "visitor_id", "is_bot"
        )
        for table in AGGREGATES:
            assert table.bucket_key is not None
            grouping = FieldsGrouping(table.bucket_key, lake.buckets(table))
            counts = grouping.deal(count_clicks_by(clicks, grouping.key))
            stamped = counts.withColumn("counted_at", F.lit(datetime.now(UTC)))
            lake.replace(table, stamped, click_hours_predicate(hours))
    listed = f"{hours[0]} to {hours[-1]}" if hours else "none"
    return [
        f"log hours {arguments.log_hours}: {len(hours)} click hours counted per URL and per country ({listed})",
        *touched.described_left(),
    ]


if __name__ == "__main__":
    exit_with(lambda: run_from_shell("spark_jobs.aggregate_clicks", __doc__, run))

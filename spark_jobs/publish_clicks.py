"""Publish the validated click hours that the given log hours touch: tables, files and the report.

A click hour is published when it was validated since it was counted, and neither it nor a log hour that touches it
failed a critical check. Replaces exactly these click hours in the published tables, exports them as Parquet and CSV
under reports/exports/, and renders reports/report.html anew.
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from include.errors import QualityError
from include.exports import export_hours
from include.job_arguments import JobArguments, exit_with
from include.log_hours import Hour
from include.report import write_report
from include.settings import Settings
from include.sources import choose_sources
from include.tables import AGGREGATES, CLICKS_BY_COUNTRY_HOURLY, QUALITY_RESULTS
from spark_jobs.io import Lake, click_hours_predicate
from spark_jobs.report_data import read_report_data
from spark_jobs.shell import run_from_shell
from spark_jobs.steps import step
from spark_jobs.touched_hours import TouchedHours, touched_click_hours
from spark_jobs.transforms.latest_results import latest_results


def run(spark: SparkSession, settings: Settings, arguments: JobArguments) -> list[str]:
    """Publish the touched click hours; returns a few lines on what was done.

    Raises:
        QualityError: if one of them was not validated, or failed a critical check; then none is published.
    """
    lake = Lake(spark, settings)
    # Between the look at the results and the writing, no hour may be counted again.
    with lake.locked():
        touched = touched_click_hours(lake, choose_sources(settings, arguments.source), arguments.log_hours)
        counted_since = _counted_since_validated(lake, touched)
        hours = [hour for hour in touched.own if hour not in counted_since]
        for computed, published in AGGREGATES.items():
            rows = lake.read_click_hours(computed, hours)
            lake.replace(published, rows, click_hours_predicate(hours))
            with step(spark, f"export {published.name}"):
                exported = lake.read_click_hours(published, hours).toArrow()
            export_hours(exported, settings.reports / "exports", published.name, hours)
        report = write_report(read_report_data(lake, settings), settings.reports)
    return [
        f"log hours {arguments.log_hours}: {len(hours)} click hours published",
        *touched.described_left(),
        *(
            f"  {hour} was counted again since it was validated: the run that did so publishes it"
            for hour in counted_since
        ),
        f"  report: {report}",
    ]


def _counted_since_validated(lake: Lake, touched: TouchedHours) -> list[Hour]:
    """The own click hours that another run over the same log hours has counted since they were validated.

    Raises:
        QualityError: if one was never validated, or it or a log hour that touches it failed a critical check.
    """
    hours = {str(hour) for hour in touched.own}
    partitions = hours.union(*touched.log_hours_of.values())
    critical = (F.col("severity") == "critical") & F.col("partition").isin(sorted(partitions))
    with step(lake.spark, "find what was validated"):
        newest = latest_results(lake.read(QUALITY_RESULTS).where(critical)).collect()
    validated_at = {row["partition"]: row["validated_at"] for row in newest}
    counted = lake.read_click_hours(CLICKS_BY_COUNTRY_HOURLY, touched.own).groupBy("click_date", "click_hour")
    with step(lake.spark, "find when hours were counted"):
        rows = counted.agg(F.max("counted_at").alias("counted_at")).collect()
    counted_at = {str(Hour.of(row["click_date"], row["click_hour"])): row["counted_at"] for row in rows}
    reasons = sorted(f"{row['partition']}: expected {row['expectation']}" for row in newest if row["outcome"] == "fail")
    reasons += [f"{hour}: not validated" for hour in sorted(hours - validated_at.keys())]
    if reasons:
        raise QualityError(
            f"nothing is published: {'; '.join(reasons)}; mend it, and run ingest_clicks, aggregate_clicks and "
            "validate_clicks again for these hours"
        )
    return [
        hour for hour in touched.own if str(hour) in counted_at and counted_at[str(hour)] >= validated_at[str(hour)]
    ]


if __name__ == "__main__":
    exit_with(lambda: run_from_shell("spark_jobs.publish_clicks", __doc__, run))

"""What the report and the end of a run show, read from the published tables, the accounting and the results."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from pyspark.sql import Row
from pyspark.sql import functions as F

from include.log_hours import Hour
from include.publication import SUITE
from include.report import AccountingRow, HourOfClicks, InstanceLoad, KeyCount, ReportData, Verdict
from include.settings import Settings
from include.tables import (
    AGGREGATES,
    CLICKS_BY_COUNTRY_HOURLY,
    CLICKS_BY_URL_HOURLY,
    GROUPING_METRICS,
    INGEST_ACCOUNTING,
    PUBLISHED_CLICKS_BY_COUNTRY_HOURLY,
    QUALITY_RESULTS,
    Table,
)
from spark_jobs.io import Lake
from spark_jobs.publication import held_hours
from spark_jobs.steps import step
from spark_jobs.transforms.latest_results import latest_results

BUSIEST_URLS = 25
ALL_COUNTRIES = 300
EARLIEST = Hour.parse("1970-01-01T00")


def read_report_data(lake: Lake, settings: Settings) -> ReportData:
    """The newest ``report_hours`` click hours that are published, and what belongs to them."""
    published = lake.read(PUBLISHED_CLICKS_BY_COUNTRY_HOURLY)
    per_hour = published.groupBy("click_date", "click_hour").agg(
        F.sum("click_count").alias("click_count"), F.sum("bot_click_count").alias("bot_click_count")
    )
    limited = per_hour.orderBy(F.desc("click_date"), F.desc("click_hour")).limit(settings.pipeline.report_hours)
    with step(lake.spark, "read clicks per hour"):
        newest = sorted(limited.collect(), key=lambda row: (row["click_date"], row["click_hour"]))
    hours = [Hour.of(row["click_date"], row["click_hour"]) for row in newest]
    accounting = _accounting(lake, hours)
    return ReportData(
        title=f"Clicks, newest {len(hours)} hours" if hours else "Clicks",
        generated_at=datetime.now(UTC),
        hours=[
            HourOfClicks(str(hour), row["click_count"], row["bot_click_count"])
            for hour, row in zip(hours, newest, strict=True)
        ],
        urls=_busiest(lake, CLICKS_BY_URL_HOURLY, hours, BUSIEST_URLS),
        countries=_busiest(lake, CLICKS_BY_COUNTRY_HOURLY, hours, ALL_COUNTRIES),
        accounting=accounting,
        verdict=_verdict(lake, hours, accounting),
        loads=_loads(lake),
    )


def _busiest(lake: Lake, computed: Table, hours: Sequence[Hour], most: int) -> list[KeyCount]:
    """The busiest keys of the published hours; their visitors are merged from the computed hours' sketches."""
    assert computed.bucket_key is not None
    key = computed.bucket_key
    busiest = (
        lake.read_click_hours(AGGREGATES[computed], hours)
        .groupBy(key)
        .agg(F.sum("click_count").alias("click_count"), F.sum("bot_click_count").alias("bot_click_count"))
        .orderBy(F.desc("click_count"), key)
        .limit(most)
    )
    visitors = (
        lake.read_click_hours(computed, hours)
        .join(F.broadcast(busiest.select(key)), key)
        .groupBy(key)
        .agg(F.hll_sketch_estimate(F.hll_union_agg("visitor_sketch")).alias("visitor_count"))
    )
    with step(lake.spark, f"read the busiest {key}"):
        rows = busiest.join(visitors, key, "left").orderBy(F.desc("click_count"), key).collect()
    return [KeyCount(row[key], row["click_count"], row["bot_click_count"], row["visitor_count"] or 0) for row in rows]


def _loads(lake: Lake) -> list[InstanceLoad]:
    """The instances of the newest run that counted anything."""
    metrics = lake.read(GROUPING_METRICS)
    newest = metrics.where("rows > 0").agg(F.max_by("run_id", "measured_at").alias("run_id"))
    with step(lake.spark, "read the load per instance"):
        rows = metrics.join(F.broadcast(newest), "run_id").collect()
    return [
        InstanceLoad(
            operator=row["operator"],
            grouping=row["grouping"],
            instance_id=row["instance_id"],
            click_count=row["rows"],
            keys=row["keys"],
            clicks_per_second=row["rows_per_second"],
            busiest_key=row["busiest_key"],
            busiest_key_share=row["busiest_key_share"],
        )
        for row in rows
    ]


def _accounting(lake: Lake, hours: Sequence[Hour]) -> list[AccountingRow]:
    if not hours:
        return []
    shown = F.arrays_overlap("click_hours", F.array(*(F.lit(str(hour)) for hour in hours)))
    with step(lake.spark, "read the accounting"):
        rows = lake.read(INGEST_ACCOUNTING).where(shown).orderBy("log_date", "log_hour", "source").collect()
    return [
        AccountingRow(
            source=row["source"],
            log_hour=str(Hour.of(row["log_date"], row["log_hour"])),
            quarantined_by_reason=dict(row["quarantined_by_reason"]),
            damaged_files=list(row["damaged_files"]),
            **{
                name: row[name]
                for name in (
                    "lines",
                    "accepted",
                    "duplicates",
                    "quarantined",
                    "late",
                    "out_of_order",
                    "files",
                    "bytes",
                    "is_closed",
                )
            },
        )
        for row in rows
    ]


def _verdict(lake: Lake, hours: Sequence[Hour], accounting: Sequence[AccountingRow]) -> Verdict:
    """The newest outcomes of the shown click hours and log hours, and the Data Docs of the newest run."""
    shown = [*map(str, hours), *(f"{row.source} {row.log_hour}" for row in accounting)]
    judged = lake.read(QUALITY_RESULTS).where(F.col("partition").isin(shown) & (F.col("suite") != SUITE))
    latest = latest_results(judged)
    with step(lake.spark, "read the newest run"):
        newest = latest.agg(F.max_by("run_id", "validated_at")).collect()[0][0]
    with step(lake.spark, "read what failed"):
        failed = latest.where("outcome = 'fail'").orderBy("partition", "expectation").collect()
    said = {
        severity: [_said(row) for row in failed if row["severity"] == severity] for severity in ("critical", "warning")
    }
    return Verdict(
        passed=not said["critical"],
        critical_failures=said["critical"],
        warnings=said["warning"],
        data_docs=f"data_docs/{newest}/click_hours.html" if newest else None,
        held=[
            f"{hour}: {'; '.join(reasons)}"
            for hour, reasons in held_hours(lake, hours[0] if hours else EARLIEST).items()
        ],
    )


def _said(row: Row) -> str:
    return f"{row['partition']}: expected {row['expectation']}; found {row['observed']}"

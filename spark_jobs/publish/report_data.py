"""What the report and the end of a run show, read from the published tables, the accounting and the results."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from include.holds import described_failure, failure_of, not_shown, of_newest_runs
from include.hours import Hour, LogHour, click_hour_of, log_hour_of
from include.settings import Settings
from include.tables import (
    GROUPING_METRICS,
    INGEST_ACCOUNTING,
    PUBLISHED_CLICKS_BY_COUNTRY_HOURLY,
    PUBLISHED_CLICKS_BY_URL_HOURLY,
    Table,
)
from spark_jobs.engine.steps import in_parallel
from spark_jobs.hours.account import left_out_of
from spark_jobs.hours.held_hours import decided_hours, held_hours, results_of
from spark_jobs.hours.touched_hours import reach_of_log_hours
from spark_jobs.lake.lake import Lake
from spark_jobs.lines.country_database import country_database_note
from spark_jobs.publish.busiest_keys import busiest_keys
from spark_jobs.publish.report import (
    AccountingRow,
    HourOfClicks,
    InstanceLoad,
    KeyCount,
    ReportData,
    Verdict,
    write_report,
)

BUSIEST_URLS = 25
ALL_COUNTRIES = 300
_COUNTED = (
    "lines", "accepted", "duplicates", "quarantined", "late", "out_of_order", "files", "bytes", "is_closed",
)  # fmt: skip
EARLIEST = Hour.parse("1970-01-01T00")


def renew_report(lake: Lake) -> Path:
    """Write the report again from what is published now; returns its file."""
    return write_report(read_report_data(lake, lake.settings), lake.settings.reports)


def read_report_data(lake: Lake, settings: Settings) -> ReportData:
    """The newest ``report_hours`` click hours that are published, and what belongs to them."""
    clicks = _clicks_per_hour(lake, settings.pipeline.report_hours)
    hours = [Hour.parse(hour.click_hour) for hour in clicks]
    accounting = _accounting(lake, hours)

    def busiest(published: Table, most: int) -> list[KeyCount]:
        return busiest_keys(lake.read_click_hours(published, hours), published.key[-1], most)

    urls, countries = in_parallel(
        lake.spark,
        lambda: busiest(PUBLISHED_CLICKS_BY_URL_HOURLY, BUSIEST_URLS),
        lambda: busiest(PUBLISHED_CLICKS_BY_COUNTRY_HOURLY, ALL_COUNTRIES),
    )
    return ReportData(
        title=f"Clicks, newest {len(hours)} hours" if hours else "Clicks",
        generated_at=datetime.now(UTC),
        hours=clicks,
        urls=urls,
        countries=countries,
        accounting=accounting,
        verdict=_verdict(lake, hours, accounting),
        loads=_loads(lake),
        country_note=country_database_note(settings),
    )


def _clicks_per_hour(lake: Lake, most: int) -> list[HourOfClicks]:
    """The newest click hours that have been published, oldest first."""
    table = PUBLISHED_CLICKS_BY_COUNTRY_HOURLY
    newest = sorted({file.click_hour for file in lake.data_files(table)})[-most:]
    days = sorted({hour.day for hour in newest})
    columns = ("click_date", "click_hour", "click_count", "bot_click_count")
    rows = lake.read_table(table, columns, [("click_date", "in", days)])
    sums = rows.group_by(columns[:2]).aggregate([(name, "sum") for name in columns[2:]])
    by_hour = {click_hour_of(row): row for row in sums.to_pylist()}
    return [
        HourOfClicks(str(hour), by_hour[hour]["click_count_sum"], by_hour[hour]["bot_click_count_sum"])
        for hour in newest
        if hour in by_hour  # a reader without the lake's lock may be overtaken
    ]


def _loads(lake: Lake) -> list[InstanceLoad]:
    """The instances of the newest run that counted anything."""
    runs = lake.read_table(GROUPING_METRICS, ["measured_at", "run_id"], [("rows", ">", 0)])
    if not runs:
        return []
    newest = runs.sort_by([("measured_at", "descending")])["run_id"][0].as_py()
    rows = lake.read_rows(GROUPING_METRICS, GROUPING_METRICS.column_names, [("run_id", "=", newest)])
    return [
        InstanceLoad(
            operator=row["operator"],
            grouping=row["grouping"],
            instance_id=row["instance_id"],
            rows=row["rows"],
            keys=row["keys"],
            rows_per_second=row["rows_per_second"],
            # It may have few visitors.
            busiest_key=None if lake.settings.pipeline.publication.smallest_visitors else row["busiest_key"],
            busiest_key_share=row["busiest_key_share"],
        )
        for row in rows
    ]


def _accounting(lake: Lake, hours: Sequence[Hour]) -> list[AccountingRow]:
    if not hours:
        return []
    oldest = hours[0].start - reach_of_log_hours(lake.settings)
    columns = [
        *_COUNTED,
        "source",
        "log_date",
        "log_hour",
        "click_hours",
        "quarantined_by_reason",
        "damaged_files",
        "left_out_by_rule",
    ]
    near = lake.read_rows(INGEST_ACCOUNTING, columns, [("log_date", ">=", oldest.date())])
    shown = set(map(str, hours))
    rows = sorted(
        (row for row in near if shown.intersection(row["click_hours"])),
        key=lambda row: (row["log_date"], row["log_hour"], row["source"]),
    )
    return [
        AccountingRow(
            source=row["source"],
            log_hour=str(log_hour_of(row)),
            quarantined_by_reason=dict(row["quarantined_by_reason"]),
            damaged_files=list(row["damaged_files"]),
            left_out=left_out_of(row).total(),
            left_out_by_rule=dict(left_out_of(row)),
            **{name: row[name] for name in _COUNTED},
        )
        for row in rows
    ]


def _verdict(lake: Lake, hours: Sequence[Hour], accounting: Sequence[AccountingRow]) -> Verdict:
    """The newest outcomes of the shown click hours and log hours, and the Data Docs of the newest run."""
    log_hours = {LogHour(row.source, Hour.parse(row.log_hour)) for row in accounting}
    latest = of_newest_runs(results_of(lake, set(hours), log_hours))
    newest = max(((row["validated_at"], row["run_id"]) for row in latest), default=(None, None))[1]
    failed = sorted(
        (row for row in latest if row["outcome"] == "fail"), key=lambda row: (row["partition"], row["expectation"])
    )
    warnings = [described_failure(row) for row in failed if row["severity"] == "warning"]
    critical = [row for row in failed if row["severity"] == "critical"]
    since = hours[0] if hours else EARLIEST
    held, decided = held_hours(lake, since), decided_hours(lake, since)
    answered = [failure for answer in decided.values() for failure in answer.findings]
    failures = [failure.described for failure in not_shown(map(failure_of, critical), answered)]
    return Verdict(
        passed=not failures,
        critical_failures=failures,
        warnings=warnings,
        data_docs=f"data_docs/{newest}/click_hours.html" if newest else None,
        held=[f"{hour}: {'; '.join(reasons)}" for hour, reasons in held.items()],
        decided=[f"{hour}: {answer.described}" for hour, answer in decided.items() if hour not in held],
    )

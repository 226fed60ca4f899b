"""Read what the hours before say: for the suites ``volume`` and ``schema_drift``."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import DataFrame

from expectations.facts import ACCOUNTING_HISTORY
from include.hours import Hour, HourRange
from include.tables import CLICKS_BY_COUNTRY_HOURLY, INGEST_ACCOUNTING
from include.usual_range import same_hour_before
from spark_jobs.lake.data_files import may_have_click_hours
from spark_jobs.lake.lake import Lake
from spark_jobs.quality.measures import click_history_facts


def click_history(lake: Lake, click_hours: Iterable[Hour]) -> DataFrame:
    """Facts, one per click hour that was counted: of these, and of the same ones of the days before.

    A range of hours is read once, however much the days before its hours overlap.
    """
    days = lake.settings.pipeline.volume.days
    hours = {compared for hour in click_hours for compared in (hour, *same_hour_before(hour, days))}
    counts = lake.read_files(
        CLICKS_BY_COUNTRY_HOURLY, may_have_click_hours(CLICKS_BY_COUNTRY_HOURLY, hours), leave_out_lost=True
    )
    return click_history_facts(counts)


def accounting_history(lake: Lake, log_hours: HourRange, click_hours: Iterable[Hour]) -> pa.Table:
    """Facts, one per source and log hour: of these hours, and at least of those that they are compared with.

    Of all sources, as a click hour is. By delta-rs, each row being a file of its own: see docs/performance.md.
    """
    volume, drift = lake.settings.pipeline.volume, lake.settings.pipeline.schema_drift
    judged = {*log_hours, *click_hours}
    whole_days = {hour.plus(-shift).day for hour in log_hours for shift in range(drift.hours + 1)}
    days = {
        compared.day for hour in judged for compared in (hour, *same_hour_before(hour, max(volume.days, drift.days)))
    }
    same_hours = [("log_date", "in", sorted(days - whole_days)), ("log_hour", "in", sorted({h.hour for h in judged}))]
    choices = ([("log_date", "in", sorted(whole_days))], same_hours)
    columns = ACCOUNTING_HISTORY.column_names
    return pa.concat_tables(lake.read_table(INGEST_ACCOUNTING, columns, choice) for choice in choices)

"""Read what the hours before say: for the suites ``volume`` and ``schema_drift``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame

from include.history import hours_looked_at, same_hour_before
from include.log_hours import Hour, HourRange, hours_predicate
from include.tables import CLICKS_BY_COUNTRY_HOURLY, INGEST_ACCOUNTING
from spark_jobs.io import Lake
from spark_jobs.transforms.measure_history import accounting_history, click_history


def history_facts(lake: Lake, log_hours: HourRange, click_hours: Sequence[Hour]) -> dict[str, DataFrame]:
    """Facts by subject, of these hours and of those that they are held against; of all sources.

    A range of hours is read once, however much the days before its hours overlap.
    """
    settings = lake.settings.pipeline
    of_clicks = _with_days_before(click_hours, settings.volume.days)
    of_lines = _with_days_before(log_hours, settings.volume.days).union(
        of_clicks, *(hours_looked_at(hour, settings.schema_drift) for hour in log_hours)
    )
    accounting = lake.read(INGEST_ACCOUNTING).where(hours_predicate(of_lines, "log_date", "log_hour"))
    return {
        "accounting_history": accounting_history(accounting),
        "click_history": click_history(lake.read_click_hours(CLICKS_BY_COUNTRY_HOURLY, of_clicks)),
    }


def _with_days_before(hours: Iterable[Hour], days: int) -> set[Hour]:
    return {one for hour in hours for one in (hour, *same_hour_before(hour, days))}

"""What follows from published hours: their days, the report, and the results database."""

from __future__ import annotations

from collections.abc import Collection

from include.hours import Hour
from spark_jobs.aggregate.days import described_lacking
from spark_jobs.engine.steps import in_parallel
from spark_jobs.lake.lake import Lake
from spark_jobs.publish.database import copy_to_database
from spark_jobs.publish.publish_days import publish_days
from spark_jobs.publish.report_data import renew_report


def follow_hours(lake: Lake, hours: Collection[Hour]) -> list[str]:
    """Bring all that up to date with these hours, also with those that are not published; a few lines on it.

    Hold the lake's lock from what changed these hours on.

    Raises:
        ClickmillError: if the database has not got them; the rest is done then.
    """
    # The report does not show days.
    lacking, report = in_parallel(lake.spark, lambda: publish_days(lake, hours), lambda: renew_report(lake))
    lake.require_locks()
    copied = copy_to_database(lake.settings, hours)
    return [f"  report: {report}", *([copied] if copied else []), *described_lacking(lacking)]

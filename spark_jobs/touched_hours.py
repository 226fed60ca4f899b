"""From log hours to the click hours that they touch, by the accounting."""

from __future__ import annotations

from collections.abc import Sequence

from include.errors import ClickmillError
from include.log_hours import Hour, HourRange
from include.sources import Source
from include.tables import INGEST_ACCOUNTING
from spark_jobs.io import Lake


def touched_click_hours(lake: Lake, sources: Sequence[Source], log_hours: HourRange) -> list[Hour]:
    """The click hours that the sources' log hours touch, or touched in earlier runs, in order.

    Raises:
        ClickmillError: if a log hour has not been ingested.
    """
    touched: set[Hour] = set()
    for source in sources:
        rows = lake.read_log_hours(INGEST_ACCOUNTING, source.name, log_hours).collect()
        missing = sorted(set(log_hours) - {Hour.of(row["log_date"], row["log_hour"]) for row in rows})
        if missing:
            raise ClickmillError(
                f"{source.name} {missing[0]} has not been ingested ({len(missing)} of {len(log_hours)} log hours); "
                f"run: python -m spark_jobs.ingest_clicks --source {source.name} --hour {missing[0]}"
            )
        touched |= {Hour.parse(hour) for row in rows for hour in row["click_hours"]}
    return sorted(touched)

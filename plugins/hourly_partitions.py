"""The timetable of log hours: a partition each, backfilled by instants.

Airflow's own drops the offsets of a range: asked for the hours from 01:00+01:00 on, it makes that of 01:00 UTC first
(https://github.com/apache/airflow/issues/67537).
"""

from __future__ import annotations

from datetime import datetime
from importlib import import_module
from typing import Any

from airflow.plugins_manager import AirflowPlugin
from airflow.timetables.trigger import CronPartitionTimetable
from typing_extensions import override


class HourlyPartitions(CronPartitionTimetable):
    """A partition at each time of the cron expression, whose backfills take the instants that they are asked for."""

    @override
    def localize_partition_datetime(self, dt: datetime) -> Any:
        """The same instant; without an offset it is UTC."""
        return super().localize_partition_datetime(dt if dt.tzinfo is None else dt.astimezone(self._timezone))


class HourlyPartitionsPlugin(AirflowPlugin):
    """Makes the timetable known, by the name under which DAGs import it: of this file Airflow makes another module."""

    name = "hourly_partitions"
    timetables = [import_module("plugins.hourly_partitions").HourlyPartitions]  # noqa: RUF012

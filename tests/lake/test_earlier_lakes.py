"""A lake whose tables were made by an earlier version is read and written like any other."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from include.hours import Hour
from include.tables import GROUPING_METRICS, OUT_OF_ORDER_KEYS
from tests.support.temporary_lake import TemporaryLake

pytestmark = pytest.mark.spark

HOUR = Hour.parse("2026-03-01T05")


def test_a_partitioned_table_gets_its_missing_column_too(lake: TemporaryLake) -> None:
    from spark_jobs.lake.data_files import has_log_hours
    from spark_jobs.lake.lake import Lake

    path = lake.settings.lake / OUT_OF_ORDER_KEYS.name
    columns = ", ".join(
        f"{column.name} {column.type}" for column in OUT_OF_ORDER_KEYS.columns if column.name != "largest_delay"
    )
    partitions = ", ".join(OUT_OF_ORDER_KEYS.partitioned_by)
    lake.spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta PARTITIONED BY ({partitions})").collect()
    stored = Lake(lake.spark, lake.settings)
    row = {
        "source": "web", "log_date": HOUR.day, "log_hour": HOUR.hour, "key_name": "url", "key": "http://shop.test/",
        "clicks": 9, "out_of_order": 2, "largest_delay": 1.5,
    }  # fmt: skip
    stored.replace(OUT_OF_ORDER_KEYS, lake.spark.createDataFrame([row]), has_log_hours("web", [HOUR]))
    assert [row["largest_delay"] for row in lake.rows(OUT_OF_ORDER_KEYS)] == [1.5]


def test_rows_are_appended_by_name(lake: TemporaryLake) -> None:
    """A column that was added stands last in the table, wherever it is declared."""
    from spark_jobs.lake.lake import Lake

    path = lake.settings.lake / GROUPING_METRICS.name
    columns = ", ".join(f"{column.name} {column.type}" for column in GROUPING_METRICS.columns if column.name != "job")
    lake.spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta").collect()
    row = {
        "run_id": "r", "measured_at": datetime.now(UTC), "job": "a job", "operator": "op", "source": "web",
        "log_hours": "h", "grouping": "g", "instances": 1, "instance_id": 0, "rows": 5, "keys": 1, "busiest_key": "k",
        "busiest_key_share": 0.5,
    }  # fmt: skip
    Lake(lake.spark, lake.settings).append_rows(GROUPING_METRICS, [row])
    (stored,) = lake.rows(GROUPING_METRICS)
    assert (stored["job"], stored["operator"], stored["rows"], stored["busiest_key"]) == ("a job", "op", 5, "k")

"""A lake whose tables were made by an earlier version is read and written like any other."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from include.holds import COLUMNS, of_newest_runs
from include.log_hours import Hour
from include.quality_index import open_index
from include.tables import (
    GROUPING_METRICS,
    OUT_OF_ORDER_KEYS,
    QUALITY_RESULTS,
)
from tests.support.temporary_lake import TemporaryLake, click

pytestmark = pytest.mark.spark

HOUR = Hour.parse("2026-03-01T05")
FORMER_RESULTS = """
    CREATE TABLE delta.`{path}` (
      run_id STRING NOT NULL, validated_at TIMESTAMP NOT NULL, suite STRING NOT NULL, partition STRING NOT NULL,
      expectation STRING NOT NULL, severity STRING NOT NULL, success BOOLEAN NOT NULL, observed STRING
    ) USING delta TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '0')
"""
FORMER_RESULT = """
    INSERT INTO delta.`{path}` VALUES
      ('old', TIMESTAMP'2026-03-01 06:00:00', 'click_hours', '2026-03-01T05', 'it was fine', 'critical', false, 'not')
"""


def _with_former_results(lake: TemporaryLake) -> None:
    path = lake.settings.lake / QUALITY_RESULTS.name
    for statement in (FORMER_RESULTS, FORMER_RESULT):
        lake.spark.sql(statement.format(path=path)).collect()


def test_results_of_an_earlier_version_are_read_with_nulls_and_hold_nothing(lake: TemporaryLake) -> None:
    from spark_jobs.lake.lake import Lake

    _with_former_results(lake)
    stored = Lake(lake.spark, lake.settings)
    (row,) = stored.read(QUALITY_RESULTS).collect()
    assert set(QUALITY_RESULTS.column_names) <= set(row.asDict())
    assert (row["run_id"], row["outcome"], row["examples"]) == ("old", None, None)
    assert of_newest_runs(stored.read_rows(QUALITY_RESULTS, COLUMNS, [])) == []


def test_missing_columns_are_added_by_the_first_write(lake: TemporaryLake) -> None:
    _with_former_results(lake)
    lake.land(str(HOUR), {"a.json": click("a", f"{HOUR}:00:00Z")})
    lake.run_all(str(HOUR))
    rows = lake.rows(QUALITY_RESULTS)
    assert "pass" in {row["outcome"] for row in rows if row["run_id"] != "old"}
    assert [row["outcome"] for row in rows if row["run_id"] == "old"] == [None]
    with open_index(lake.settings) as index:
        assert {event.outcome for event in index.events(str(HOUR))} == {"published"}
    columns = lake.spark.sql(f"DESCRIBE delta.`{lake.settings.lake / QUALITY_RESULTS.name}`").collect()
    (described,) = [column for column in columns if column["col_name"] == "outcome"]
    assert described["comment"].startswith("pass, fail")
    commits = lake.commits(QUALITY_RESULTS)
    lake.run("validate", str(HOUR))
    assert lake.commits(QUALITY_RESULTS) == commits + 1


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

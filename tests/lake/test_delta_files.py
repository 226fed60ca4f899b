"""Files are chosen from Delta's log: the right ones, without Spark jobs, and not where the log is not enough.

And a log that a kill has left with half a file is read all the same.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from include.errors import ClickmillError
from include.hours import Hour, HourRange, click_hours_predicate
from include.tables import CLICKS, CLICKS_BY_URL_HOURLY
from spark_jobs.engine.spark_status import SparkStatus
from spark_jobs.engine.steps import step
from spark_jobs.lake.data_files import TableVersion, has_log_hours, may_have_click_hours
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.transactions import StreamTransaction
from tests.support.job_times import job_times
from tests.support.temporary_lake import click

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.temporary_lake import TemporaryLake

pytestmark = pytest.mark.spark

#: Of these log hours' clicks, one is of the day before.
HOURS = HourRange(Hour.parse("2026-03-01T00"), Hour.parse("2026-03-01T03"))


def ingest(lake: TemporaryLake) -> Lake:
    """Three log hours, each with a click of its hour and a late one of the hour before."""
    for hour in HOURS:
        minutes = [hour.start, hour.plus(-1).start]
        lines = [click(f"{hour} {when}", when.isoformat(), f"http://shop.test/{hour}") for when in minutes]
        lake.land(str(hour), {"a.json": b"".join(lines)})
    lake.run("ingest", str(HOURS.start), str(HOURS.end))
    return Lake(lake.spark, lake.settings)


def test_files_with_a_click_hour_are_chosen_by_what_the_log_says_of_them(lake: TemporaryLake) -> None:
    stored = ingest(lake)
    version = TableVersion.newest(stored.path(CLICKS), CLICKS)
    # What is in the files, by a reader that knows no log.
    hours_of = {
        file.path: set(pq.ParquetFile(file.path).read(["click_hour"])["click_hour"].to_pylist())
        for file in version.chosen()
    }
    assert sorted(map(sorted, hours_of.values())) == [[0, 1], [0, 23], [1, 2]]
    for text, others in (("2026-02-28T23", 2), ("2026-03-01T02", 2), ("2026-03-01T01", 1)):
        hour = Hour.parse(text)
        chosen = {file.path for file in version.chosen(may_have_click_hours(CLICKS, [hour]))}
        assert chosen >= {path for path, hours in hours_of.items() if hour.hour in hours}
        assert len(hours_of) - len(chosen) in {others, others - 1}
        asked = [hour, hour.plus(1)]
        by_delta = stored.read(CLICKS).where(click_hours_predicate(asked)).collect()
        assert sorted(stored.read_click_hours(CLICKS, asked).collect()) == sorted(by_delta)
        assert by_delta
    assert not version.chosen(may_have_click_hours(CLICKS, [Hour.parse("2026-03-02T00")]))
    (file,) = version.chosen(has_log_hours("web", [Hour.parse("2026-03-01T01")]))
    assert "log_hour=1/" in str(file.path)
    assert not version.chosen(has_log_hours("access", HOURS))


def test_the_checksum_of_a_version_says_what_spark_says_of_the_next(lake: TemporaryLake) -> None:
    stored = ingest(lake)
    again = stored.write_files(CLICKS, stored.read(CLICKS))
    stored.append(CLICKS, again, StreamTransaction("stream", 0))
    table, number = stored.path(CLICKS), stored.version(CLICKS)
    assert number
    ours, by_spark = (table / "_delta_log" / f"{of:020}.crc" for of in (number, number + 1))
    checksum = read_checksum(ours)
    files = DeltaTable(table).file_uris()
    assert checksum["numFiles"] == len(files) == 3 + len(again)
    assert checksum["tableSizeBytes"] == sum(Path(file).stat().st_size for file in files)
    # Spark is to say it of itself.
    ours.unlink()
    lake.spark.sql(f"INSERT INTO delta.`{table}` SELECT * FROM delta.`{table}` WHERE click_hour = 2").collect()
    of_next = read_checksum(by_spark)
    assert (checksum["metadata"], checksum["protocol"]) == (of_next["metadata"], of_next["protocol"])
    assert [checksum[of] for of in ("numMetadata", "numProtocol")] == [of_next["numMetadata"], of_next["numProtocol"]]
    assert of_next["numFiles"] == len(files) + 1


def read_checksum(file: Path) -> dict[str, Any]:
    checksum: dict[str, Any] = json.loads(file.read_text())
    # Spark leaves out what is null, and writes the columns in its own order of names.
    metadata = {name: value for name, value in checksum["metadata"].items() if value is not None}
    return checksum | {"metadata": metadata | {"schemaString": json.loads(metadata["schemaString"])}}


def test_validation_is_two_spark_jobs_though_the_tables_are_new(lake: TemporaryLake) -> None:
    ingest(lake)
    lake.run("aggregate", str(HOURS.start), str(HOURS.end))
    status = SparkStatus.of(lake.spark)
    assert status is not None
    with step(lake.spark, "validate new tables"):
        lake.run("validate", str(HOURS.start), str(HOURS.end))
    # Examples of what failed are looked for by jobs of their own.
    stages = status.stages("validate new tables")
    assert len({stage.job_id for stage in stages if "measure quality" in stage.steps}) == 2
    assert len(job_times(status, "validate new tables")) < 10


def test_a_lost_file_is_an_error_or_left_out(lake: TemporaryLake) -> None:
    stored = ingest(lake)
    choices = [has_log_hours("web", HOURS)]
    lost, *others = stored.data_files(CLICKS, *choices)
    lost.path.unlink()
    with pytest.raises(Exception, match=lost.path.name):
        stored.read_files(CLICKS, *choices).collect()
    assert stored.read_files(CLICKS, *choices, leave_out_lost=True).count() == 2 * len(others)


def test_a_table_whose_files_do_not_tell_its_rows_is_refused(lake: TemporaryLake) -> None:
    stored = ingest(lake)
    lake.run("aggregate", str(HOURS.start), str(HOURS.end))
    path = stored.path(CLICKS_BY_URL_HOURLY)
    lake.spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')").collect()
    with pytest.raises(ClickmillError, match=r"reader version 3; expected 1: without deletion vectors"):
        stored.read_click_hours(CLICKS_BY_URL_HOURLY, [HOURS.start])


def test_half_a_hint_of_the_last_checkpoint_harms_nobody(spark: SparkSession, tmp_path: Path) -> None:
    """As a server leaves it that is killed while it overwrites _last_checkpoint (docs/performance.md)."""

    def append(table: Path, ids: Iterable[int]) -> None:
        for of_row in ids:
            rows = spark.range(of_row, of_row + 1).write.format("delta").mode("append")
            rows.option("delta.checkpointInterval", 2).save(str(table))

    append(tmp_path / "made", range(4))
    # A table that the server has not yet read: it would not look for the hint of one that it knows.
    torn = shutil.copytree(tmp_path / "made", tmp_path / "torn")
    hint = torn / "_delta_log" / "_last_checkpoint"
    hint.write_bytes(hint.read_bytes()[:40])

    assert sorted(row["id"] for row in spark.read.format("delta").load(str(torn)).collect()) == [0, 1, 2, 3]
    assert DeltaTable(torn).version() == 3
    append(torn, range(4, 6))
    assert sorted(DeltaTable(torn).to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2, 3, 4, 5]
    assert json.loads(hint.read_bytes())["version"] == 4

"""A micro-batch that two queries write at the same moment, one of which has been ended: it is in the table once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from include.tables import QUARANTINED_CLICKS
from spark_jobs.engine.steps import in_parallel
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.transactions import StreamTransaction
from tests.support.temporary_lake import TemporaryLake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_micro_batch_that_is_written_twice_at_once_is_there_once(spark: SparkSession, lake: TemporaryLake) -> None:
    writer = Lake(spark, lake.settings)
    rows = spark.range(3).selectExpr(
        "'web' AS source", "DATE'2026-03-01' AS log_date", "8 AS log_hour", "'clicks/0' AS file", "id AS line",
        "'not_json' AS reason", "'x' AS raw", "1 AS bytes",
    )  # fmt: skip

    def write(batch_id: int) -> None:
        # Each of the two has written its own files.
        files = writer.write_files(QUARANTINED_CLICKS, rows)
        writer.append(QUARANTINED_CLICKS, files, StreamTransaction("stream", batch_id))

    for batch_id in range(4):
        in_parallel(spark, *[partial(write, batch_id)] * 2)
        assert len(lake.rows(QUARANTINED_CLICKS)) == 3 * (batch_id + 1)

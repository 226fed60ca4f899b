"""Clicks that came by a stream: no job reads their lines again, so rows and accounts are put right in place."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from include.errors import ClickmillError
from include.hours import Hour
from include.tables import CLICKS, INGEST_ACCOUNTING
from samples.sample_logs import make_sample
from samples.sample_spec import SampleSpec
from spark_jobs.erasure.requests import Requests
from spark_jobs.stream.checkpoint import StreamCheckpoint
from tests.erasure.erased_lake import batch_sums, erase, files_with, landed, of_streams
from tests.stream.files_lake import FilesLake, in_order_of_names
from tests.support.log_files import content_of
from tests.support.temporary_lake import SOURCES, make_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SPEC = SampleSpec(start=Hour.parse("2026-03-01T08"), hours=2, clicks_per_hour=800, seed=37)


def streamed_lake(spark: SparkSession, home: Path) -> FilesLake:
    lake = FilesLake(spark, make_settings(home))
    lake.configure(max_files_per_batch=2)
    return lake


def run_all(lake: FilesLake) -> None:
    lake.run_all(str(SPEC.start), str(SPEC.start.plus(SPEC.hours)))


def test_streamed_clicks_go_while_no_stream_runs(spark: SparkSession, tmp_path: Path) -> None:
    lake = streamed_lake(spark, tmp_path / "erased")
    make_sample(SPEC, lake.settings.landing)
    in_order_of_names(lake.settings.landing)
    lines = [line for file in landed(lake) for line in content_of(file).splitlines(keepends=True)]
    lake.read_all()
    run_all(lake)
    times = Counter(row["visitor_id"] for row in lake.rows(CLICKS) if row["visitor_id"])
    # Of a stream's duplicates the lake has no rows: of one who has none.
    visitor = next(
        visitor for visitor, count in times.most_common() if count == sum(visitor.encode() in line for line in lines)
    )

    checkpoint = StreamCheckpoint.of(lake.settings, "web")
    with checkpoint.owned(lake.settings), pytest.raises(ClickmillError, match=r"nothing is erased.*runs already"):
        erase(lake, Requests.of([visitor]))
    assert files_with(lake.settings.home, visitor)
    erase(lake, Requests.of([visitor]))
    assert files_with(lake.settings.home, visitor) == []

    fresh = streamed_lake(spark, tmp_path / "fresh")
    shutil.copytree(lake.settings.landing, fresh.settings.landing)
    in_order_of_names(fresh.settings.landing)
    fresh.read_all()
    run_all(fresh)
    assert of_streams(lake) == of_streams(fresh)
    assert batch_sums(lake) == batch_sums(fresh)

    # The stream goes on where it was, and its next run accounts for nothing twice.
    before = lake.rows(INGEST_ACCOUNTING)
    lake.read_all()
    lake.run("ingest", str(SPEC.start), str(SPEC.start.plus(SPEC.hours)))
    assert lake.rows(INGEST_ACCOUNTING) == before

    # Streamed no more, its log hours are ingested: what the stream had counted counts no more.
    lake.settings.sources_file.write_text(SOURCES, encoding="utf-8")
    lake.run("ingest", str(SPEC.start), str(SPEC.start.plus(SPEC.hours)))
    counted = ("lines", "accepted", "duplicates", "quarantined")
    after = lake.rows(INGEST_ACCOUNTING)
    assert [[row[name] for name in counted] for row in after] == [[row[name] for name in counted] for row in before]
    assert not batch_sums(lake).total()

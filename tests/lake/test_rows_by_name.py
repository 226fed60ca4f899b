"""Rows made outside Spark are by column name; a name that is no column, and a required one left out, are refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from include.holds import HELD, event_row
from include.log_hours import Hour
from include.settings import Settings
from include.tables import QUALITY_RESULTS
from spark_jobs.lake.declared import as_arrow
from spark_jobs.lake.lake import Lake

ROW = event_row("run", datetime(2026, 3, 1, 6, tzinfo=UTC), Hour.parse("2026-03-01T05"), HELD, "so", examples=["it"])


@pytest.fixture
def stored(settings: Settings) -> Lake:
    """A lake with an empty ``quality_results``."""
    write_deltalake(settings.lake / QUALITY_RESULTS.name, as_arrow(QUALITY_RESULTS, []))
    return Lake(cast(SparkSession, None), settings)


def _rows(lake: Lake) -> int:
    return DeltaTable(lake.path(QUALITY_RESULTS)).to_pyarrow_dataset().count_rows()


def test_a_name_that_is_no_column_is_refused(stored: Lake) -> None:
    rows = [ROW, ROW | {"outcom": HELD, "who": "Ada"}]
    expected = "a row of quality_results has no column outcom, who: "
    with pytest.raises(ValueError, match=expected):
        stored.append_rows(QUALITY_RESULTS, rows)
    with pytest.raises(ValueError, match=expected):
        stored.replace_rows(QUALITY_RESULTS, rows, "suite = 'publication'")
    assert _rows(stored) == 0


def test_a_required_column_left_out_is_refused(stored: Lake) -> None:
    row = {name: value for name, value in ROW.items() if name != "outcome"}
    with pytest.raises(ValueError, match="a row of quality_results lacks outcome: "):
        stored.append_rows(QUALITY_RESULTS, [row])
    assert _rows(stored) == 0


def test_another_column_left_out_is_null_and_the_order_is_irrelevant(stored: Lake) -> None:
    row = {name: ROW[name] for name in reversed(ROW) if name != "actor"}
    stored.append_rows(QUALITY_RESULTS, [row])
    (found,) = stored.read_rows(QUALITY_RESULTS, QUALITY_RESULTS.column_names, [])
    assert found == dict.fromkeys(QUALITY_RESULTS.column_names) | row
